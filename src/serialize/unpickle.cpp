// The data-only unpickler: pickle's stack machine over Value. What a file may name is in `call` and `global` below.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "serialize/pickle.h"

namespace rush::serialize {
namespace {

struct DtypeRow {
  std::string_view name, storage;  // storage: the class that PyTorch's files name, where it has one
  size_t size;
};
constexpr DtypeRow kDtypes[] = {
    {"float32", "FloatStorage", 4},
    {"float64", "DoubleStorage", 8},
    {"float16", "HalfStorage", 2},
    {"bfloat16", "BFloat16Storage", 2},
    {"int64", "LongStorage", 8},
    {"int32", "IntStorage", 4},
    {"int16", "ShortStorage", 2},
    {"int8", "CharStorage", 1},
    {"uint8", "ByteStorage", 1},
    {"bool", "BoolStorage", 1},
    {"complex64", "ComplexFloatStorage", 8},
    {"complex128", "ComplexDoubleStorage", 16},
    {"uint16", "", 2},
    {"uint32", "", 4},
    {"uint64", "", 8},
    {"float8_e4m3fn", "", 1},
    {"float8_e5m2", "", 1},
    {"complex32", "", 4},
};

// Containers may nest this deep. Whoever walks a tree may therefore recurse.
constexpr size_t kMaxDepth = 500;

[[noreturn]] void broken(const std::string& what) { throw PickleError("broken pickle: " + what); }

std::string utf8(std::string_view bytes) {
  // Python rejects these as well; later a std::string counts as text.
  for (size_t i = 0; i < bytes.size();) {
    const auto c = static_cast<uint8_t>(bytes[i]);
    const size_t more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 : c >> 3 == 30 ? 3 : 9;
    if (more == 9 || i + more >= bytes.size()) broken("a string is not UTF-8");
    uint32_t point = more == 0 ? c : c & (0x3f >> more);
    for (size_t k = 1; k <= more; ++k) {
      if ((bytes[i + k] & 0xc0) != 0x80) broken("a string is not UTF-8");
      point = point << 6 | (bytes[i + k] & 0x3f);
    }
    constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (point < least[more] || point > 0x10ffff) broken("a string is not UTF-8");
    i += more + 1;
  }
  return std::string(bytes);
}

class Unpickler {
 public:
  Unpickler(std::string_view bytes, const StorageReader& storage)
      : bytes_(bytes), storage_(storage), allowance_((size_t{64} << 20) + 64 * bytes.size()) {}
  // What is not handed out is taken apart one by one, so that neither a deeply nested tree recurses on its way out nor
  // a cycle leaks.
  ~Unpickler() {
    const auto dropped = [this](const void* object) { return !accepted_ || heights_.count(object) == 0; };
    for (auto& made : sequences_)
      if (dropped(made.get())) made->items.clear();
    for (auto& made : dicts_)
      if (dropped(made.get())) made->items.clear(), made->attributes = {};
    for (auto& made : tensors_)
      if (dropped(made.get())) made->attributes = {};
  }

  Value run() {
    for (;;) {
      const auto op = static_cast<uint8_t>(take(1)[0]);
      if (op == '.') break;
      step(op);
    }
    Value result = pop();
    check_tree(result);
    accepted_ = true;
    return result;
  }
  std::string_view rest() const { return bytes_; }

 private:
  void step(uint8_t op) {
    switch (op) {
      case 0x80:
        if (const auto version = number<uint8_t>(); version < 2 || version > 5)
          broken("protocol " + std::to_string(version) + " is not between 2 and 5");
        return;
      case 0x95:
        return void(take(8));  // FRAME: a hint for reading ahead
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':
        return void(pop());
      case '1':
        return void(pop_mark());
      case '2':
        memorize(~size_t{0});
        return push(recall(~size_t{0}));
      case 'N':
        return push(None{});
      case 0x88:
        return push(true);
      case 0x89:
        return push(false);
      case 'J':
        return push(int64_t{static_cast<int32_t>(number<uint32_t>())});
      case 'K':
        return push(int64_t{number<uint8_t>()});
      case 'M':
        return push(int64_t{number<uint16_t>()});
      case 0x8a:
        return push_long(take(number<uint8_t>()));
      case 0x8b:
        return push_long(take(number<uint32_t>()));
      case 'G': {
        uint64_t bits = 0;
        for (const char c : take(8)) bits = bits << 8 | static_cast<uint8_t>(c);
        return push(std::bit_cast<double>(bits));
      }
      case 0x8c:
        return push(utf8(take(number<uint8_t>())));
      case 'X':
        return push(utf8(take(number<uint32_t>())));
      case 0x8d:
        return push(utf8(take(number<uint64_t>())));
      case 'U':
        return push(utf8(take(number<uint8_t>())));  // Python 2's str
      case 'T':
        return push(utf8(take(number<uint32_t>())));
      case 'C':
        return push(Bytes{std::string(take(number<uint8_t>()))});
      case 'B':
        return push(Bytes{std::string(take(number<uint32_t>()))});
      case 0x8e:
        return push(Bytes{std::string(take(number<uint64_t>()))});
      case 0x96:
        return push(Bytes{std::string(take(number<uint64_t>())), true});
      case ']':
        return push(sequence(Sequence::list, {}));
      case 'l':
        return push(sequence(Sequence::list, pop_mark()));
      case ')':
        return push(sequence(Sequence::tuple, {}));
      case 't':
        return push(sequence(Sequence::tuple, pop_mark()));
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      case 0x8f:
        return push(sequence(Sequence::set, {}));
      case 0x91:
        return push(sequence(Sequence::frozenset, pop_mark()));
      case '}':
        return push(dict(false));
      case 'd': {
        auto items = pop_mark();
        Value made = dict(false);
        set_items(made, std::move(items));
        return push(std::move(made));
      }
      case 'a': {
        Value item = pop();
        return append(Sequence::list, &item, 1);
      }
      case 'e': {
        auto items = pop_mark();
        return append(Sequence::list, items.data(), items.size());
      }
      case 0x90: {
        auto items = pop_mark();
        return append(Sequence::set, items.data(), items.size());
      }
      case 's': {
        std::vector<Value> items(2);
        items[1] = pop(), items[0] = pop();
        return set_items(top(), std::move(items));
      }
      case 'u': {
        auto items = pop_mark();
        return set_items(top(), std::move(items));
      }
      case 'c': {
        const auto module = line(), name = line();
        return push(global(module, name));
      }
      case 0x93: {
        const auto name = text(pop()), module = text(pop());
        return push(global(module, name));
      }
      case 'R':
      case 0x81: {
        const Value arguments = pop(), callee = pop();
        return push(call(callee, arguments));
      }
      case 0x92: {
        const Value keywords = pop(), arguments = pop(), callee = pop();
        if (const auto* named = keywords.ref<Dict>(); !named || !named->items.empty())
          broken("an object is built with keyword arguments");
        return push(call(callee, arguments));
      }
      case 'b': {
        const Value state = pop();
        return build(state);
      }
      case 'Q':
        return push(persistent(pop()));
      case 'h':
        return push(recall(number<uint8_t>()));
      case 'j':
        return push(recall(number<uint32_t>()));
      case 'q':
        return memorize(number<uint8_t>());
      case 'r':
        return memorize(number<uint32_t>());
      case 0x94:
        return memorize(memo_.size());
      default:
        broken("operation " + std::to_string(op) + " is unknown, or of protocol 0 or 1");
    }
  }

  // ---- what a file may name ------------------------------------------------------------------------------------

  Value global(std::string_view module, std::string_view name) {
    if (module == "torch") {
      for (const auto& row : kDtypes)
        if (row.name == name) return DtypeName{std::string(name)};
      for (const auto& row : kDtypes)
        if (!row.storage.empty() && row.storage == name) return Global{"torch." + std::string(name)};
    }
    std::string full =
        (module == "__builtin__" ? std::string("builtins") : std::string(module)) + "." + std::string(name);
    static constexpr std::string_view known[] = {"collections.OrderedDict",
                                                 "builtins.complex",
                                                 "builtins.set",
                                                 "builtins.frozenset",
                                                 "builtins.bytearray",
                                                 "builtins.list",
                                                 "builtins.tuple",
                                                 "builtins.dict",
                                                 "_codecs.encode",
                                                 "torch.Size",
                                                 "torch.device",
                                                 "torch.Tensor",
                                                 "torch.nn.parameter.Parameter",
                                                 "torch.storage.UntypedStorage",
                                                 "torch._utils._rebuild_tensor",
                                                 "torch._utils._rebuild_tensor_v2",
                                                 "torch._utils._rebuild_tensor_v3",
                                                 "torch._utils._rebuild_parameter",
                                                 "torch._utils._rebuild_parameter_with_state",
                                                 "torch._utils._rebuild_meta_tensor_no_storage",
                                                 "torch._tensor._rebuild_from_type_v2"};
    if (std::find(std::begin(known), std::end(known), full) == std::end(known))
      throw PickleError("'" + full +
                        "' is not on the list of what a file may contain: tensors, parameters, numbers, "
                        "strings, bytes, lists, tuples, sets, dicts, sizes, dtypes and devices. Load the file with "
                        "weights_only=False if you trust where it comes from");
    return Global{std::move(full)};
  }

  Value call(const Value& callee, const Value& arguments) {
    const auto* function = callee.as<Global>();
    const auto* tuple = arguments.ref<Sequence>();
    if (!function || !tuple || tuple->kind != Sequence::tuple) broken("it calls what is no function");
    const std::string& name = function->name;
    const auto& args = tuple->items;
    const auto arity = [&](size_t least, size_t most) {
      if (args.size() < least || args.size() > most)
        broken(name + " is called with " + std::to_string(args.size()) + " arguments");
    };
    if (name == "collections.OrderedDict") {
      arity(0, 1);
      Value made = dict(true);
      if (args.size() == 1) {  // a list of pairs, as protocol-2 pickles of Python 2 have it
        std::vector<Value> flat;
        for (const auto& pair : items(args[0]))
          for (auto& item : copy(pair)) flat.push_back(std::move(item));
        set_items(made, std::move(flat));
      }
      return made;
    }
    if (name == "builtins.complex") {
      arity(1, 2);
      return std::complex<double>(real(args[0]), args.size() == 2 ? real(args[1]) : 0.0);
    }
    if (name == "builtins.list" || name == "builtins.tuple" || name == "builtins.set" || name == "builtins.frozenset") {
      arity(0, 1);
      const auto kind = name == "builtins.list"    ? Sequence::list
                        : name == "builtins.tuple" ? Sequence::tuple
                        : name == "builtins.set"   ? Sequence::set
                                                   : Sequence::frozenset;
      return sequence(kind, args.empty() ? std::vector<Value>{} : copy(args[0]));
    }
    if (name == "builtins.dict") {
      arity(0, 0);
      return dict(false);
    }
    if (name == "_codecs.encode") {
      arity(2, 2);
      if (text(args[1]) != "latin1") broken("bytes are encoded as " + text(args[1]) + ", not latin1");
      return Bytes{latin1(text(args[0]))};
    }
    if (name == "builtins.bytearray") {
      arity(0, 2);
      if (args.empty()) return Bytes{"", true};
      if (args.size() == 2) return Bytes{latin1(text(args[0])), true};
      const auto* bytes = args[0].as<Bytes>();
      if (!bytes) broken("a bytearray is made from what is not bytes");
      charge(bytes->data.size());
      return Bytes{bytes->data, true};
    }
    if (name == "torch.Size") {
      arity(0, 1);
      if (!args.empty()) integers(args[0]);
      return sequence(Sequence::size, args.empty() ? std::vector<Value>{} : copy(args[0]));
    }
    if (name == "torch.device") {
      arity(1, 2);
      return DeviceName{text(args[0]) + (args.size() == 2 ? ":" + std::to_string(integer(args[1])) : "")};
    }
    if (name == "torch._utils._rebuild_tensor") {
      arity(4, 4);
      return tensor(args[0], "", args[1], args[2], args[3], false);
    }
    if (name == "torch._utils._rebuild_tensor_v2") {
      arity(6, 7);
      return tensor(args[0], "", args[1], args[2], args[3], boolean(args[4]));
    }
    if (name == "torch._utils._rebuild_tensor_v3") {
      arity(7, 8);
      const auto* dtype = args[6].as<DtypeName>();
      if (!dtype) broken("a tensor's dtype is no dtype");
      return tensor(args[0], dtype->name, args[1], args[2], args[3], boolean(args[4]));
    }
    if (name == "torch._utils._rebuild_meta_tensor_no_storage") {
      arity(4, 4);
      const auto* dtype = args[0].as<DtypeName>();
      if (!dtype) broken("a tensor's dtype is no dtype");
      return tensor(None{}, dtype->name, 0, args[1], args[2], boolean(args[3]));
    }
    if (name == "torch._utils._rebuild_parameter" || name == "torch._utils._rebuild_parameter_with_state") {
      arity(3, 4);
      const auto* data = args[0].ref<TensorRecord>();
      if (!data) broken("a parameter is made from what is no tensor");
      charge(sizeof(*data) + data->sizes.size() * 2 * sizeof(int64_t));
      auto made = std::make_shared<TensorRecord>(*data);
      made->parameter = true;
      made->requires_grad = boolean(args[1]);
      if (args.size() == 4) made->attributes = args[3];
      tensors_.push_back(made);
      return made;
    }
    if (name == "torch._tensor._rebuild_from_type_v2") {
      arity(4, 4);
      const auto* type = args[1].as<Global>();
      if (!type || (type->name != "torch.Tensor" && type->name != "torch.nn.parameter.Parameter"))
        broken("a tensor's class is neither Tensor nor Parameter");
      Value made = call_flat(args[0], args[2]);
      if (auto* record = made.ref<TensorRecord>()) record->attributes = args[3];
      return made;
    }
    broken(name + " is called");
  }

  // A function inside of a call; that function cannot be the same one again, which bounds the recursion.
  Value call_flat(const Value& callee, const Value& arguments) {
    if (const auto* function = callee.as<Global>(); !function || !function->name.starts_with("torch._utils."))
      broken("a tensor is rebuilt by what rebuilds no tensor");
    return call(callee, arguments);
  }

  Value tensor(const Value& storage, std::string dtype, const Value& offset, const Value& sizes, const Value& strides,
               bool requires_grad) {
    auto made = std::make_shared<TensorRecord>();
    if (!storage.as<None>()) {
      if (!storage.ref<StorageRecord>()) broken("a tensor's storage is no storage");
      made->storage = *storage.as<std::shared_ptr<StorageRecord>>();
      if (dtype.empty()) dtype = made->storage->dtype;
    }
    made->dtype = std::move(dtype);
    made->offset = integer(offset);
    made->sizes = integers(sizes);
    made->strides = integers(strides);
    made->requires_grad = requires_grad;
    const auto elements = made->storage ? made->storage->bytes.size / element_size(made->dtype) : ~size_t{0};
    if (!fits(made->sizes, made->strides, made->offset, elements))
      broken("a tensor's sizes, strides and offset do not fit into its storage");
    tensors_.push_back(made);
    return made;
  }

  Value persistent(const Value& id) {
    const auto& parts = items(id);
    if (parts.size() < 5 || text(parts[0]) != "storage") broken("a persistent id is not that of a storage");
    // The sixth part, which the old format alone has, would make this storage a view of another one.
    if (parts.size() > 5 && !parts[5].as<None>()) broken("a storage is a view of another storage");
    const auto* type = parts[1].as<Global>();
    std::string dtype = type && type->name == "torch.storage.UntypedStorage" ? "uint8" : "";
    for (const auto& row : kDtypes)
      if (type && !row.storage.empty() && type->name == "torch." + std::string(row.storage)) dtype = row.name;
    if (dtype.empty()) broken("a storage's type is unknown");
    const auto count = integer(parts[4]);
    if (count < 0 || count > int64_t{1} << 58) broken("a storage's size is " + std::to_string(count));
    return storage_(text(parts[2]), dtype, text(parts[3]), static_cast<size_t>(count) * element_size(dtype));
  }

  void build(const Value& state) {
    Value& object = top();
    if (auto* made = object.ref<Dict>(); made && made->ordered && state.ref<Dict>())
      made->attributes = state;
    else
      broken("it sets the state of an object that has none");
  }

  // ---- the stack -----------------------------------------------------------------------------------------------

  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) broken("it is cut off");
    const auto taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  template <class T>
  T number() {
    T value = 0;
    const auto bytes = take(sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(static_cast<T>(static_cast<uint8_t>(bytes[i])) << 8 * i);
    return value;
  }
  std::string_view line() {
    const auto end = bytes_.find('\n');
    if (end == std::string_view::npos) broken("it is cut off");
    const auto taken = take(end + 1);
    return taken.substr(0, end);
  }
  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return push(BigInt{std::string(bytes)});
    uint64_t value = !bytes.empty() && bytes.back() & 0x80 ? ~0ull : 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    push(static_cast<int64_t>(value));
  }

  template <class T>
  void push(T&& value) {
    stack_.emplace_back(std::forward<T>(value));
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Value& top() {
    if (stack_.size() <= floor()) broken("its stack is empty");
    return stack_.back();
  }
  Value pop() {
    Value value = std::move(top());
    stack_.pop_back();
    return value;
  }
  std::vector<Value> pop_mark() {
    if (marks_.empty()) broken("a mark is missing");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> items(std::make_move_iterator(from), std::make_move_iterator(stack_.end()));
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return items;
  }
  void push_tuple(size_t count) {
    std::vector<Value> items(count);
    while (count > 0) items[--count] = pop();
    push(sequence(Sequence::tuple, std::move(items)));
  }
  void memorize(size_t key) { memo_[key] = top(); }
  Value recall(size_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) broken("it refers to an object that it has not defined");
    if (const auto* text = found->second.as<std::string>()) charge(text->size());
    if (const auto* bytes = found->second.as<Bytes>()) charge(bytes->data.size());
    return found->second;
  }
  // A few bytes of a file can ask for a copy of much. Honest files copy short strings; what is beyond the limit is a
  // bomb.
  void charge(size_t size) {
    if (size > allowance_) broken("it unfolds to far more than its size");
    allowance_ -= size;
  }

  Value sequence(Sequence::Kind kind, std::vector<Value> items) {
    sequences_.push_back(std::make_shared<Sequence>(Sequence{kind, std::move(items)}));
    return sequences_.back();
  }
  Value dict(bool ordered) {
    dicts_.push_back(std::make_shared<Dict>(Dict{{}, ordered, {}}));
    return dicts_.back();
  }
  void append(Sequence::Kind kind, Value* items, size_t count) {
    auto* target = top().ref<Sequence>();
    if (!target || target->kind != kind) broken("it appends to what is no list or set");
    target->items.insert(target->items.end(), std::make_move_iterator(items), std::make_move_iterator(items + count));
  }
  void set_items(Value& target, std::vector<Value> items) {
    auto* made = target.ref<Dict>();
    if (!made || items.size() % 2) broken("it sets items of what is no dict");
    for (size_t i = 0; i < items.size(); i += 2) {
      if (!hashable(items[i])) broken("a dict's key is a list, a dict or a set");
      made->items.emplace_back(std::move(items[i]), std::move(items[i + 1]));
    }
  }
  static bool hashable(const Value& key) {
    const auto* sequence = key.ref<Sequence>();
    return !key.ref<Dict>() && (!sequence || (sequence->kind != Sequence::list && sequence->kind != Sequence::set));
  }

  static std::string text(const Value& value) {
    const auto* text = value.as<std::string>();
    if (!text) broken("a string is expected, and something else found");
    return *text;
  }
  static int64_t integer(const Value& value) {
    const auto* integer = value.as<int64_t>();
    if (!integer) broken("an integer is expected, and something else found");
    return *integer;
  }
  static bool boolean(const Value& value) {
    const auto* boolean = value.as<bool>();
    if (!boolean) broken("True or False is expected, and something else found");
    return *boolean;
  }
  static double real(const Value& value) {
    if (const auto* number = value.as<double>()) return *number;
    return static_cast<double>(integer(value));
  }
  static const std::vector<Value>& items(const Value& value) {
    const auto* sequence = value.ref<Sequence>();
    if (!sequence) broken("a list or tuple is expected, and something else found");
    return sequence->items;
  }
  std::vector<Value> copy(const Value& value) {
    charge(items(value).size() * sizeof(Value));
    return items(value);
  }
  std::vector<int64_t> integers(const Value& value) {
    charge(items(value).size() * sizeof(int64_t));
    std::vector<int64_t> result;
    for (const auto& item : items(value)) result.push_back(integer(item));
    return result;
  }
  std::string latin1(const std::string& text) {
    charge(text.size());
    std::string bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<uint8_t>(text[i]);
      if (c >= 0x80 && c >> 1 != 0x61) broken("a character is not in latin1");
      bytes.push_back(c < 0x80 ? text[i] : static_cast<char>((c & 3) << 6 | (text[++i] & 0x3f)));
    }
    return bytes;
  }

  // Walks the finished tree once, without recursion: no functions left in it, no cycles, not too deep.
  void check_tree(const Value& root) {
    struct Level {
      const void* object = nullptr;
      std::vector<const Value*> children;
      size_t height = 1;
    };
    std::vector<Level> path(1);
    path[0].children.push_back(&root);
    while (!path.empty()) {
      if (path.back().children.empty()) {
        const Level done = std::move(path.back());
        path.pop_back();
        heights_[done.object] = done.height;
        if (!path.empty()) path.back().height = std::max(path.back().height, done.height + 1);
        continue;
      }
      const Value& value = *path.back().children.back();
      path.back().children.pop_back();
      if (value.as<Global>()) broken("'" + value.as<Global>()->name + "' is left in it as a value");
      Level level;
      if (auto* sequence = value.ref<Sequence>()) {
        level.object = sequence;
        for (const auto& item : sequence->items) level.children.push_back(&item);
      } else if (auto* made = value.ref<Dict>()) {
        level.object = made;
        for (const auto& [key, item] : made->items) level.children.push_back(&key), level.children.push_back(&item);
        level.children.push_back(&made->attributes);
      } else if (auto* record = value.ref<TensorRecord>()) {
        level.object = record;
        level.children.push_back(&record->attributes);
      } else {
        continue;
      }
      const auto [known, fresh] = heights_.emplace(level.object, 0);
      if (!fresh && known->second == 0) broken("a container contains itself");
      const size_t height = fresh ? 1 : known->second;
      if (path.size() + height > kMaxDepth) broken("containers are nested too deeply");
      if (fresh)
        path.push_back(std::move(level));
      else
        path.back().height = std::max(path.back().height, height + 1);
    }
  }

  std::string_view bytes_;
  const StorageReader& storage_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<size_t, Value> memo_;
  std::vector<std::shared_ptr<Sequence>> sequences_;
  std::vector<std::shared_ptr<Dict>> dicts_;
  std::vector<std::shared_ptr<TensorRecord>> tensors_;
  size_t allowance_;
  std::unordered_map<const void*, size_t> heights_;  // of the containers reached from the result; 0 while still open
  bool accepted_ = false;
};

}  // namespace

size_t element_size(std::string_view dtype) {
  for (const auto& row : kDtypes)
    if (row.name == dtype) return row.size;
  return 0;
}

bool fits(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset, size_t elements) {
  // The last element's place must lie in the storage; no product or sum on the way may overflow.
  constexpr uint64_t limit = uint64_t{1} << 60;
  if (sizes.size() != strides.size() || offset < 0) return false;
  uint64_t last = static_cast<uint64_t>(offset), count = 1;
  bool empty = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) return false;
    empty |= sizes[i] == 0;
    if (sizes[i] <= 1) continue;
    const auto size = static_cast<uint64_t>(sizes[i]), stride = static_cast<uint64_t>(strides[i]);
    uint64_t reach = 0;
    if (__builtin_mul_overflow(size - 1, stride, &reach) || __builtin_add_overflow(last, reach, &last) ||
        __builtin_mul_overflow(count, size, &count) || count > limit)
      return false;
  }
  return last <= limit && (empty || last < elements);
}

std::string storage_class(std::string_view dtype) {
  for (const auto& row : kDtypes)
    if (row.name == dtype) return std::string(row.storage);
  return "";
}

Value unpickle(std::string_view& bytes, const StorageReader& storage) {
  Unpickler unpickler(bytes, storage);
  Value value = unpickler.run();
  bytes = unpickler.rest();
  return value;
}

}  // namespace rush::serialize
