// Between what a file says of tensors (value.h) and tensors.
#pragma once

#include "rushlight/tensor.h"
#include "serialize/value.h"

namespace rush::serialize {

/// Makes tensors, a parameter's without requires_grad; what shared memory in the file shares it again, and a tensor
/// that occurs twice is one.
class TensorReader {
 public:
  /// Puts a storage, given as a one-dimensional uint8 tensor, to the device where it belongs.
  using Place = std::function<Tensor(const Tensor& bytes, const std::string& location)>;
  /// `copy`: into memory of the allocator, so that nothing refers to the file any more. Without `place`, all goes to
  /// the CPU.
  explicit TensorReader(bool copy, Place place = {}) : copy_(copy), place_(std::move(place)) {}
  /// Throws NotImplementedError for a dtype that there are no tensors of.
  Tensor operator()(const std::shared_ptr<TensorRecord>& record);
  /// The whole storage as a one-dimensional tensor of its dtype.
  Tensor flat(const std::shared_ptr<StorageRecord>& storage);

 private:
  Ref<Storage> storage(const std::shared_ptr<StorageRecord>& stored);
  bool copy_;
  Place place_;
  // The keys are kept alive along with the values, so that no other object takes a key's address.
  std::unordered_map<std::shared_ptr<StorageRecord>, Ref<Storage>> storages_;
  std::unordered_map<std::shared_ptr<TensorRecord>, Tensor> tensors_;
};

/// Describes tensors; the counterpart of TensorReader.
class TensorWriter {
 public:
  std::shared_ptr<TensorRecord> operator()(const Tensor& tensor, bool requires_grad = false, bool parameter = false);
  std::shared_ptr<StorageRecord> storage(const Tensor& tensor);

 private:
  std::unordered_map<const Storage*, std::shared_ptr<StorageRecord>> storages_;
};

/// A tensor of memory's dtype over its whole storage; no view of it as autograd sees it. Throws Error where it does not
/// fit.
Tensor over(const Tensor& memory, Ints sizes, Ints strides, int64_t offset);

/// Throws NotImplementedError for a name that is no dtype here.
DType dtype_named(std::string_view name);

}  // namespace rush::serialize
