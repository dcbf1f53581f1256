// The pickler: Value to a protocol 2 stream in the words that PyTorch itself writes.
#include "serialize/pickle.h"

#include <bit>
#include <unordered_map>

namespace rush::serialize {
namespace {

class Pickler {
 public:
  explicit Pickler(const StorageWriter& storage) : storage_(storage) {}

  std::string run(const Value& value) {
    out_ = "\x80\x02";
    write(value);
    out_ += '.';
    return std::move(out_);
  }

 private:
  void write(const Value& value) {
    if (++depth_ > 500) throw PickleError("cannot save: containers are nested more than 500 deep");
    std::visit([this](const auto& data) { put(data); }, value.data);
    --depth_;
  }

  void put(None) { out_ += 'N'; }
  void put(bool value) { out_ += value ? '\x88' : '\x89'; }
  void put(int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += 'K', number(value, 1);
    } else if (value >= 0 && value < 65536) {
      out_ += 'M', number(value, 2);
    } else if (value == static_cast<int32_t>(value)) {
      out_ += 'J', number(value, 4);
    } else {
      out_ += '\x8a', number(8, 1), number(value, 8);
    }
  }
  void put(double value) {
    out_ += 'G';
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
  }
  void put(std::complex<double> value) {
    global("builtins complex");
    put(value.real()), put(value.imag());
    out_ += "\x86R";
  }
  void put(const std::string& text) {
    if (text.size() > 0xffffffffu) throw PickleError("cannot save: a string is longer than 4 GiB");
    out_ += 'X';
    number(static_cast<int64_t>(text.size()), 4);
    out_ += text;
  }
  void put(const BigInt& value) {
    if (value.bytes.size() > 255) throw PickleError("cannot save: an integer has more than 2040 bits");
    out_ += '\x8a';
    number(static_cast<int64_t>(value.bytes.size()), 1);
    out_ += value.bytes;
  }
  void put(const Bytes& bytes) {
    // Protocol 2 has no bytes: they are text, whose characters are the bytes.
    std::string text;
    for (const char c : bytes.data) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte >= 0x80) text += static_cast<char>(0xc0 | byte >> 6);
      text += static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
    }
    if (bytes.is_mutable) global("builtins bytearray");
    global("_codecs encode");
    put(text), put(std::string("latin1"));
    out_ += "\x86R";
    if (bytes.is_mutable) out_ += "\x85R";
  }
  void put(const DtypeName& dtype) { global("torch " + dtype.name); }
  void put(const DeviceName& device) {
    global("torch device");
    const auto colon = device.text.find(':');
    put(device.text.substr(0, colon));
    if (colon == std::string::npos) {
      out_ += "\x85R";
    } else {
      put(int64_t{std::stoi(device.text.substr(colon + 1))});
      out_ += "\x86R";
    }
  }
  void put(const Global& global) { throw PickleError("cannot save: '" + global.name + "' is a class or function"); }

  void put(const std::shared_ptr<Sequence>& sequence) {
    if (recall(sequence.get())) return;
    const auto& items = sequence->items;
    switch (sequence->kind) {
      case Sequence::list:
        out_ += ']';
        remember(sequence.get());
        if (!items.empty()) each(items), out_ += 'e';
        return;
      case Sequence::tuple:
        tuple(items);
        break;
      case Sequence::size:
        global("torch Size");
        tuple(items);
        out_ += "\x85R";
        break;
      case Sequence::set:
      case Sequence::frozenset:
        if (sequence->kind == Sequence::frozenset)
          throw PickleError("cannot save: a frozenset is not on the list of what PyTorch's loader accepts");
        global("builtins set");
        out_ += ']';
        if (!items.empty()) each(items), out_ += 'e';
        out_ += "\x85R";
        break;
    }
    remember(sequence.get());
  }
  void put(const std::shared_ptr<Dict>& dict) {
    if (recall(dict.get())) return;
    if (dict->ordered) {
      ordered_dict();
    } else {
      out_ += '}';
    }
    remember(dict.get());
    if (!dict->items.empty()) {
      out_ += '(';
      for (const auto& [key, item] : dict->items) write(key), write(item);
      out_ += 'u';
    }
    if (dict->ordered && !dict->attributes.as<None>()) write(dict->attributes), out_ += 'b';
  }
  void put(const std::shared_ptr<StorageRecord>&) { throw PickleError("cannot save: a storage without a tensor"); }
  void put(const std::shared_ptr<TensorRecord>& tensor) {
    if (recall(tensor.get())) return;
    const auto* state = tensor->attributes.ref<Dict>();
    const bool with_state = tensor->parameter && state && !state->items.empty();
    if (tensor->parameter) {
      global(with_state ? "torch._utils _rebuild_parameter_with_state" : "torch._utils _rebuild_parameter");
      out_ += '(';
    }
    put_data(*tensor);
    if (tensor->parameter) {
      put(tensor->requires_grad);
      ordered_dict();
      if (with_state) write(tensor->attributes);
      out_ += "tR";
    }
    remember(tensor.get());
  }
  void put_data(const TensorRecord& tensor) {
    const bool requires_grad = tensor.requires_grad && !tensor.parameter;
    if (!tensor.storage) {
      global("torch._utils _rebuild_meta_tensor_no_storage");
      out_ += '(', put(DtypeName{tensor.dtype}), integers(tensor.sizes), integers(tensor.strides), put(requires_grad);
      out_ += "tR";
      return;
    }
    if (const auto [known, fresh] = dtypes_.emplace(tensor.storage.get(), tensor.dtype);
        !fresh && known->second != tensor.dtype)
      throw PickleError("cannot save: two tensors share memory with different dtypes, " + known->second + " and " +
                        tensor.dtype);
    // A dtype without a storage class of its own goes by bytes and is named at the end.
    const std::string type = storage_class(tensor.dtype);
    global(type.empty() ? "torch._utils _rebuild_tensor_v3" : "torch._utils _rebuild_tensor_v2");
    out_ += "((";
    put(std::string("storage"));
    global(type.empty() ? "torch.storage UntypedStorage" : "torch " + type);
    put(storage_(tensor.storage)), put(tensor.storage->location);
    put(static_cast<int64_t>(tensor.storage->bytes.size / (type.empty() ? 1 : element_size(tensor.dtype))));
    out_ += "tQ";
    put(tensor.offset), integers(tensor.sizes), integers(tensor.strides), put(requires_grad);
    ordered_dict();
    if (type.empty()) put(DtypeName{tensor.dtype});
    out_ += "tR";
  }

  void number(int64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> 8 * i);
  }
  void each(const std::vector<Value>& items) {
    out_ += '(';
    for (const auto& item : items) write(item);
  }
  void tuple(const std::vector<Value>& items) {
    if (items.empty()) {
      out_ += ')';
    } else {
      each(items);
      out_ += 't';
    }
  }
  void integers(const std::vector<int64_t>& values) { tuple({values.begin(), values.end()}); }
  void ordered_dict() {
    global("collections OrderedDict");
    out_ += ")R";
  }
  void global(std::string name) {
    name[name.find(' ')] = '\n';
    out_ += 'c' + name + '\n';
  }
  void remember(const void* object) {
    const auto key = memo_.size();
    memo_.emplace(object, key);
    if (key < 256) {
      out_ += 'q', number(static_cast<int64_t>(key), 1);
    } else {
      out_ += 'r', number(static_cast<int64_t>(key), 4);
    }
  }
  bool recall(const void* object) {
    const auto found = memo_.find(object);
    if (found == memo_.end()) return false;
    if (found->second < 256) {
      out_ += 'h', number(static_cast<int64_t>(found->second), 1);
    } else {
      out_ += 'j', number(static_cast<int64_t>(found->second), 4);
    }
    return true;
  }

  const StorageWriter& storage_;
  std::string out_;
  std::unordered_map<const void*, size_t> memo_;
  std::unordered_map<const StorageRecord*, std::string> dtypes_;
  size_t depth_ = 0;
};

}  // namespace

std::string pickle(const Value& value, const StorageWriter& storage) { return Pickler(storage).run(value); }

}  // namespace rush::serialize
