// An operator's schema: PyTorch's schema language, read at compile time from a template argument.
//
//   "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
//   "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"
//
// `self` makes a function (named `input` there) and a method; a first argument of another name makes a function only.
// `Tensor|Scalar` is a Tensor that Python may give as a number, where PyTorch has an overload for it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rush {

/// Text that can be a template argument.
template <size_t N>
struct Text {
  char chars[N];
  constexpr Text(const char (&t)[N]) {
    for (size_t i = 0; i < N; ++i) chars[i] = t[i];
  }
  constexpr std::string_view view() const { return {chars, N - 1}; }
};

enum class Kind : uint8_t {
  Tensor,
  OptTensor,
  Tensors,
  Int,
  OptInt,
  Ints,
  OptInts,
  Float,
  OptFloat,
  Floats,
  OptFloats,
  Bool,
  OptBool,
  Bools,
  Scalar,
  OptScalar,
  Scalars,
  Str,
  OptStr,
  DType,
  OptDType,
  OptDevice,
  Generator,
  OptMemoryFormat,
  OptLayout,
};
constexpr bool holds_tensors(Kind k) { return k <= Kind::Tensors; }

struct Arg {
  Kind kind{};
  std::string_view name, fallback;  // fallback: the default's text, empty if there is none
  bool keyword_only = false;
  bool number = false;  // a Tensor|Scalar
  bool holes = false;   // a Tensor?[]
  int length = 0;       // of int[N]: a single number stands for N of it
};

enum class Returns : uint8_t { Tensor, Tuple, List, Bool, Int, Float, Scalar, Nothing };

inline constexpr size_t kMaxArgs = 20, kMaxResults = 7;

struct Schema {
  std::string_view text, name, overload;
  std::array<Arg, kMaxArgs> args{};
  size_t count = 0, required = 0, positional = 0;
  Returns returns{};
  size_t results = 1;                                  // tensors in a tuple
  std::array<std::string_view, kMaxResults> fields{};  // their names, if they have any
  constexpr bool is_method() const { return count > 0 && args[0].name == "self"; }
  constexpr int find(std::string_view arg) const {
    for (size_t i = 0; i < count; ++i)
      if (args[i].name == arg) return int(i);
    return -1;
  }
};

namespace schema_parser {

constexpr std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

/// Takes the text before the next `separator` outside brackets and quotes off the front of `s`.
constexpr std::string_view next(std::string_view& s, char separator) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '\'') quoted = !quoted;
    if (quoted) continue;
    if (s[i] == '[' || s[i] == '(') ++depth;
    if (s[i] == ']' || s[i] == ')') --depth;
    if (s[i] == separator && depth == 0) {
      const auto head = s.substr(0, i);
      s.remove_prefix(i + 1);
      return trim(head);
    }
  }
  const auto head = s;
  s = {};
  return trim(head);
}

constexpr Kind kind_of(std::string_view t, int& length) {
  struct Row {
    std::string_view name;
    Kind kind;
  };
  constexpr Row rows[] = {
      {"Tensor", Kind::Tensor},
      {"Tensor?", Kind::OptTensor},
      {"Tensor|Scalar", Kind::Tensor},
      {"Tensor|Scalar?", Kind::OptTensor},
      {"Tensor[]", Kind::Tensors},
      {"Tensor?[]", Kind::Tensors},
      {"int", Kind::Int},
      {"int?", Kind::OptInt},
      {"int[]", Kind::Ints},
      {"int[]?", Kind::OptInts},
      {"float", Kind::Float},
      {"float?", Kind::OptFloat},
      {"float[]", Kind::Floats},
      {"float[]?", Kind::OptFloats},
      {"bool", Kind::Bool},
      {"bool?", Kind::OptBool},
      {"bool[]", Kind::Bools},
      {"Scalar", Kind::Scalar},
      {"Scalar?", Kind::OptScalar},
      {"Scalar[]", Kind::Scalars},
      {"str", Kind::Str},
      {"str?", Kind::OptStr},
      {"ScalarType", Kind::DType},
      {"ScalarType?", Kind::OptDType},
      {"Device?", Kind::OptDevice},
      {"Generator?", Kind::Generator},
      {"MemoryFormat?", Kind::OptMemoryFormat},
      {"Layout?", Kind::OptLayout},
  };
  for (const Row& r : rows)
    if (r.name == t) return r.kind;
  if (t.starts_with("int[")) {  // int[2] and int[2]?
    for (char c : t.substr(4, t.find(']') - 4)) length = 10 * length + (c - '0');
    return t.ends_with('?') ? Kind::OptInts : Kind::Ints;
  }
  throw "unknown type in schema";
}

constexpr Schema parse(std::string_view t) {
  Schema s;
  s.text = t;
  const size_t open = t.find('('), arrow = t.rfind("->");
  if (open == t.npos || arrow == t.npos) throw "schema must read 'name(args) -> type'";
  const size_t close = t.rfind(')', arrow);
  std::string_view name = trim(t.substr(0, open));
  s.name = next(name, '.');
  s.overload = name;
  std::string_view body = trim(t.substr(open + 1, close - open - 1));
  bool keyword_only = false;
  while (!body.empty()) {
    std::string_view one = next(body, ',');
    body = trim(body);
    if (one == "*") {
      keyword_only = true;
      continue;
    }
    Arg a;
    const std::string_view type = next(one, ' ');
    a.kind = kind_of(type, a.length);
    a.number = type.find('|') != type.npos;
    a.holes = type == "Tensor?[]";
    a.name = next(one, '=');
    a.fallback = trim(one);
    a.keyword_only = keyword_only;
    if (a.fallback.empty() && !keyword_only) {
      if (s.required != s.count) throw "an argument without default follows one with";
      s.required = s.count + 1;
    } else if (a.fallback.empty()) {
      s.required = s.count + 1;
    }
    if (!keyword_only) s.positional = s.count + 1;
    s.args[s.count++] = a;
  }
  std::string_view result = trim(t.substr(arrow + 2));
  if (result == "Tensor")
    s.returns = Returns::Tensor;
  else if (result == "Tensor[]")
    s.returns = Returns::List;
  else if (result == "bool")
    s.returns = Returns::Bool;
  else if (result == "int")
    s.returns = Returns::Int;
  else if (result == "float")
    s.returns = Returns::Float;
  else if (result == "Scalar")
    s.returns = Returns::Scalar;
  else if (result == "()")
    s.returns = Returns::Nothing;
  else if (result.starts_with('(')) {
    s.returns = Returns::Tuple;
    s.results = 0;
    result = result.substr(1, result.size() - 2);
    while (!result.empty()) {
      std::string_view one = next(result, ',');
      result = trim(result);
      next(one, ' ');  // each is a Tensor
      s.fields[s.results++] = one;
    }
  } else
    throw "unknown result type in schema";
  if (s.returns != Returns::Tensor && s.returns != Returns::Tuple) s.results = 0;
  return s;
}

}  // namespace schema_parser

template <Text S>
inline constexpr Schema schema_of = schema_parser::parse(S.view());

}  // namespace rush
