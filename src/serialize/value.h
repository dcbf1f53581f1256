// What a file may contain: plain values, containers, and tensors described by storage, shape and strides. Files are
// read into this tree and written from it; neither side needs to know the Tensor class or Python.
#pragma once

#include <complex>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "serialize/zip.h"

namespace rush::serialize {

struct None {};
/// An integer of more than 64 bits: little-endian two's complement, as in the file.
struct BigInt {
  std::string bytes;
};
struct Bytes {
  std::string data;
  bool is_mutable = false;  // Python's bytearray
};
/// A dtype by its name: "float32".
struct DtypeName {
  std::string name;
};
/// A device as users write it: "cuda:1".
struct DeviceName {
  std::string text;
};
/// A class or function that a file names. Only the reader's stack holds it; finished trees don't.
struct Global {
  std::string name;
};

struct Sequence;
struct Dict;
struct StorageRecord;
struct TensorRecord;

/// One value. Containers and tensors are shared by reference, so that what was one object before saving is one after.
struct Value {
  std::variant<None, bool, int64_t, double, std::complex<double>, std::string, BigInt, Bytes, DtypeName, DeviceName,
               Global, std::shared_ptr<Sequence>, std::shared_ptr<Dict>, std::shared_ptr<StorageRecord>,
               std::shared_ptr<TensorRecord>>
      data;

  Value() = default;
  Value(const char* text) : data(std::string(text)) {}
  Value(int value) : data(int64_t{value}) {}
  template <class T>
  requires(!std::is_same_v<std::remove_cvref_t<T>, Value> && std::is_constructible_v<decltype(data), T>)
      Value(T&& value)
      : data(std::forward<T>(value)) {}

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  /// The container or tensor this is, or null.
  template <class T>
  T* ref() const {
    auto* const pointer = std::get_if<std::shared_ptr<T>>(&data);
    return pointer ? pointer->get() : nullptr;
  }
};

struct Sequence {
  enum Kind { list, tuple, set, frozenset, size } kind = list;  // size: torch.Size
  std::vector<Value> items;
};

struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in order; of equal keys the last one counts
  bool ordered = false;                        // collections.OrderedDict
  Value attributes;                            // the instance's own __dict__, such as a state_dict's _metadata; or None

  /// The value under a string key, or null.
  const Value* find(std::string_view key) const {
    for (auto item = items.rbegin(); item != items.rend(); ++item)
      if (const auto* text = item->first.as<std::string>(); text && *text == key) return &item->second;
    return nullptr;
  }
};

/// A tensor's memory. Several tensors may share one.
struct StorageRecord {
  Blob bytes;
  std::string dtype = "uint8";   // of its elements
  std::string location = "cpu";  // the device it was saved from
};

struct TensorRecord {
  std::shared_ptr<StorageRecord> storage;  // null: a meta tensor, shape without data
  std::string dtype;
  int64_t offset = 0;  // in elements
  std::vector<int64_t> sizes, strides;
  bool requires_grad = false, parameter = false;
  Value attributes;  // a Parameter's own __dict__, or None
};

inline Value make_list(std::vector<Value> items) {
  return std::make_shared<Sequence>(Sequence{Sequence::list, std::move(items)});
}
inline Value make_tuple(std::vector<Value> items) {
  return std::make_shared<Sequence>(Sequence{Sequence::tuple, std::move(items)});
}
inline Value make_dict(std::vector<std::pair<Value, Value>> items, bool ordered = false) {
  return std::make_shared<Dict>(Dict{std::move(items), ordered, {}});
}

}  // namespace rush::serialize
