// Tensors from records and records from tensors; and with them rush::load and rush::save.
#include "serialize/tensors.h"

#include <algorithm>
#include <cstring>

#include "rushlight/parallel.h"
#include "rushlight/serialize.h"
#include "serialize/checkpoint.h"

namespace rush {
namespace serialize {
namespace {

Tensor over_unchecked(Ref<Storage> storage, DType dtype, Ints sizes, Ints strides, int64_t offset) {
  Ref<TensorImpl> impl(new TensorImpl);
  impl->device = storage->device();
  impl->storage = std::move(storage);
  impl->dtype = dtype;
  impl->sizes = Dims(sizes);
  impl->strides = Dims(strides);
  impl->offset = offset;
  impl->refresh();
  return Tensor(std::move(impl));
}

// A bool that is neither 0 nor 1 is undefined behaviour wherever it is read.
bool has_odd_bools(const Blob& bytes) {
  return std::any_of(bytes.data, bytes.data + bytes.size, [](std::byte b) { return b > std::byte{1}; });
}

}  // namespace

Tensor over(const Tensor& memory, Ints sizes, Ints strides, int64_t offset) {
  const auto& storage = memory.storage();
  check(storage && fits({sizes.begin(), sizes.size()}, {strides.begin(), strides.size()}, offset,
                        static_cast<size_t>(storage->bytes() / memory.itemsize())),
        "a tensor of sizes ", sizes, ", strides ", strides, " and offset ", offset, " does not fit into its storage");
  return over_unchecked(storage, memory.dtype(), sizes, strides, offset);
}

DType dtype_named(std::string_view name) {
  for (int i = 0; i < kDTypes; ++i)
    if (name_of(DType(i)) == name) return DType(i);
  raise<NotImplementedError>("there are no tensors of dtype ", name, " yet");
}

Ref<Storage> TensorReader::storage(const std::shared_ptr<StorageRecord>& stored) {
  auto& made = storages_[stored];
  if (made) return made;
  const Blob& bytes = stored->bytes;
  const auto size = static_cast<int64_t>(bytes.size);
  const bool mend = stored->dtype == "bool" && has_odd_bools(bytes);
  if (copy_ || mend) {
    made = Storage::allocate(size, Device());
    auto* const first = static_cast<uint8_t*>(made->data());
    const auto* const from = reinterpret_cast<const uint8_t*>(bytes.data);
    parallel_for(0, size, 1 << 20,
                 [&](int64_t lo, int64_t hi) { std::memcpy(first + lo, from + lo, size_t(hi - lo)); });
    if (mend) std::transform(first, first + size, first, [](uint8_t b) { return uint8_t(b != 0); });
  } else {
    made = Storage::wrap(bytes.data, size, Device(), [owner = bytes.owner] {});
  }
  if (place_) made = place_(over_unchecked(made, kUInt8, {size}, {1}, 0), stored->location).storage();
  return made;
}

Tensor TensorReader::flat(const std::shared_ptr<StorageRecord>& stored) {
  const DType dtype = dtype_named(stored->dtype);
  return over_unchecked(storage(stored), dtype, {static_cast<int64_t>(stored->bytes.size) / size_of(dtype)}, {1}, 0);
}

Tensor TensorReader::operator()(const std::shared_ptr<TensorRecord>& record) {
  Tensor& made = tensors_[record];
  if (made.defined()) return made;
  const DType dtype = dtype_named(record->dtype);
  const Ints sizes(record->sizes.data(), record->sizes.size()), strides(record->strides.data(), record->strides.size());
  if (record->storage) {
    made = over_unchecked(storage(record->storage), dtype, sizes, strides, record->offset);
  } else {
    made =
        allocate({.sizes = Dims(sizes), .dtype = dtype, .device = Device(DeviceType::Meta), .strides = Dims(strides)});
  }
  if (record->requires_grad && !record->parameter) made.requires_grad_();
  return made;
}

std::shared_ptr<StorageRecord> TensorWriter::storage(const Tensor& tensor) {
  auto& made = storages_[tensor.storage().get()];
  if (!made) {
    made = std::make_shared<StorageRecord>();
    Ref<Storage> bytes = tensor.storage();
    if (tensor.is_cuda()) {
      const int64_t n = bytes->bytes();
      bytes = over_unchecked(bytes, kUInt8, {n}, {1}, 0).cpu().storage();
      made->location = text(tensor.device());
    }
    auto owner = std::make_shared<Ref<Storage>>(std::move(bytes));
    made->bytes.data = static_cast<std::byte*>((*owner)->data());
    made->bytes.size = static_cast<size_t>((*owner)->bytes());
    made->bytes.owner = std::move(owner);
    made->dtype = name_of(tensor.dtype());
  }
  return made;
}

std::shared_ptr<TensorRecord> TensorWriter::operator()(const Tensor& tensor, bool requires_grad, bool parameter) {
  auto record = std::make_shared<TensorRecord>();
  if (!tensor.is_meta()) record->storage = storage(tensor);
  record->dtype = name_of(tensor.dtype());
  record->offset = tensor.storage_offset();
  record->sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  record->strides.assign(tensor.strides().begin(), tensor.strides().end());
  record->requires_grad = requires_grad;
  record->parameter = parameter;
  return record;
}

namespace {

void collect(const Value& value, const std::string& name, TensorReader& reader, NamedTensors& out) {
  const auto below = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (const auto* record = value.as<std::shared_ptr<TensorRecord>>()) {
    out.emplace_back(name, reader(*record));
  } else if (const auto* dict = value.ref<Dict>()) {
    for (const auto& [key, item] : dict->items) {
      if (const auto* text = key.as<std::string>()) collect(item, below(*text), reader, out);
      if (const auto* number = key.as<int64_t>()) collect(item, below(std::to_string(*number)), reader, out);
    }
  } else if (const auto* sequence = value.ref<Sequence>()) {
    for (size_t i = 0; i < sequence->items.size(); ++i)
      collect(sequence->items[i], below(std::to_string(i)), reader, out);
  }
}

}  // namespace
}  // namespace serialize

void save(const NamedTensors& tensors, const std::string& path) {
  serialize::TensorWriter writer;
  std::vector<std::pair<serialize::Value, serialize::Value>> items;
  for (const auto& [name, tensor] : tensors) items.emplace_back(name, writer(tensor));
  serialize::save(serialize::make_dict(std::move(items), true), path);
}

NamedTensors load(const std::string& path, bool mmap) {
  serialize::TensorReader reader(!mmap);
  NamedTensors tensors;
  serialize::collect(serialize::load(serialize::map_file(path)), "", reader, tensors);
  return tensors;
}

}  // namespace rush
