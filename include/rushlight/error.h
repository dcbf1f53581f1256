// What is thrown: one C++ type for each Python exception that PyTorch raises, and the checks that throw them.
//
//   check(a.dim() == 2, "expected a matrix, got shape ", a.sizes());          // RuntimeError in Python
//   check<IndexError>(i < n, "index ", i, " is out of bounds for size ", n);
//
// A message says what was given and what would be right. The operator's name is put in front by the call (see op.h).
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace rush {

/// RuntimeError in Python, and the base of every error thrown here.
class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  /// Puts "name: " before the message, the first time only: the innermost operator that failed is the one named.
  void name_operator(std::string_view name) {
    if (!named_) message_.insert(0, std::string(name) + ": ");
    named_ = true;
  }

 private:
  std::string message_;
  bool named_ = false;
};

struct IndexError : Error {
  using Error::Error;
};
struct ValueError : Error {
  using Error::Error;
};
struct TypeError : Error {
  using Error::Error;
};
struct NotImplementedError : Error {
  using Error::Error;
};
/// torch.OutOfMemoryError in Python.
struct OutOfMemoryError : Error {
  using Error::Error;
};
/// torch.linalg.LinAlgError in Python.
struct LinAlgError : Error {
  using Error::Error;
};

/// The parts written one after the other, as operator<< writes them.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  stream << std::boolalpha;
  (stream << ... << parts);
  return std::move(stream).str();
}

template <class E = Error, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void raise(const Parts&... parts) {
  throw E(text(parts...));
}

/// Throws E with the parts as its message unless `condition` holds.
template <class E = Error, class... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    raise<E>(parts...);
}

/// For what can't be unless this library is wrong.
template <class... Parts>
void assume(bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    raise<Error>("internal error, please report it: ", parts...);
}

}  // namespace rush
