// Python's pickle format, read as data: no import, no call, no class outside of a fixed list, so that a file from a
// stranger can at worst be refused. Written at protocol 2, which torch.load(weights_only=True) reads.
#pragma once

#include <functional>
#include <span>

#include "serialize/value.h"

namespace rush::serialize {

/// A pickle that is broken or asks for what is not on the list; pickle.UnpicklingError in Python.
struct PickleError : Error {
  using Error::Error;
};

/// Bytes of one element of a dtype; 0 for a name that is no dtype.
size_t element_size(std::string_view dtype);
/// The class that files name for a storage of this dtype ("FloatStorage"); "" where there is none.
std::string storage_class(std::string_view dtype);

/// Whether a tensor of these sizes and strides lies within a storage of so many elements. Safe for any numbers.
bool fits(std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t offset, size_t elements);

/// Where a pickle says "storage KEY with so many bytes", this returns it; the same key gets the same storage.
using StorageReader = std::function<std::shared_ptr<StorageRecord>(const std::string& key, const std::string& dtype,
                                                                   const std::string& location, size_t size)>;

/// Reads one pickle (protocols 2 to 5) from the front of `bytes` and drops it from them. Throws PickleError.
Value unpickle(std::string_view& bytes, const StorageReader& storage);

/// Appends a storage to the file and returns its key.
using StorageWriter = std::function<std::string(const std::shared_ptr<StorageRecord>&)>;

/// Writes one pickle of protocol 2. Throws PickleError where PyTorch's reader would not accept the value.
std::string pickle(const Value& value, const StorageWriter& storage);

}  // namespace rush::serialize
