// Glue between archives, pickles and storages. What is in a .pt file: NAME/data.pkl, NAME/byteorder, NAME/version and
// NAME/data/KEY for each storage.
#include "serialize/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rush::serialize {
namespace {

static_assert(std::endian::native == std::endian::little, "storages are written as they are in memory");

Blob swap_bytes(const Blob& bytes, const std::string& dtype) {
  const size_t width = element_size(dtype) / (dtype.starts_with("complex") ? 2 : 1);
  Blob result = Blob::copy_of(bytes.text());
  for (size_t i = 0; i + width <= result.size; i += width) std::reverse(result.data + i, result.data + i + width);
  return result;
}

// The format from before 2020: magic number, version, facts about the machine, the object, the storages' keys as five
// pickles, then each storage as its number of elements and its bytes. A storage's size is thus known before its data.
Value load_old(const Blob& file) {
  struct Pending {
    std::shared_ptr<StorageRecord> storage;
    size_t size;
  };
  std::unordered_map<std::string, Pending> storages;
  auto bytes = file.text();
  const StorageReader none = [](auto&&...) -> std::shared_ptr<StorageRecord> {
    throw PickleError("a header has a tensor");
  };
  static const std::string magic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
  Value first;
  try {
    first = unpickle(bytes, none);
  } catch (const PickleError&) {
  }
  if (const auto* number = first.as<BigInt>(); !number || number->bytes != magic)
    throw FileError("not a .pt file: it is neither a zip archive nor one of PyTorch's older format");
  unpickle(bytes, none);
  const Value machine = unpickle(bytes, none);
  if (const auto* facts = machine.ref<Dict>()) {
    const auto* little = facts->find("little_endian");
    if (little && little->as<bool>() && !*little->as<bool>())
      throw FileError("a file of the older format from a big-endian machine cannot be read");
  }
  // Tensors are checked against their storages' sizes while the pickle is read, so storages get their sizes at once and
  // their memory, which must lie within the file, afterwards.
  size_t total = 0;
  const Value value =
      unpickle(bytes, [&](const std::string& key, const std::string& dtype, const std::string& location, size_t size) {
        auto& pending = storages[key];
        if (!pending.storage) {
          total += size;
          if (total > file.size) throw PickleError("broken file: its storages are larger than the file");
          auto storage = std::make_shared<StorageRecord>();
          storage->bytes.size = size, storage->dtype = dtype, storage->location = location;
          pending = {std::move(storage), size};
        }
        if (pending.size != size || pending.storage->dtype != dtype)
          throw PickleError("broken file: one storage is described in two ways");
        return pending.storage;
      });
  const Value keys = unpickle(bytes, none);
  if (!keys.ref<Sequence>()) throw FileError("broken file: its list of storages is no list");
  size_t at = file.size - bytes.size();
  for (const auto& key : keys.ref<Sequence>()->items) {
    const auto* text = key.as<std::string>();
    const auto found = text ? storages.find(*text) : storages.end();
    if (found == storages.end()) throw FileError("broken file: its list of storages names one that no tensor has");
    auto& [storage, size] = found->second;
    const size_t width = element_size(storage->dtype);
    int64_t count = 0;
    std::memcpy(&count, file.slice(at, 8).data, 8);
    if (count < 0 || static_cast<size_t>(count) != size / width)
      throw FileError("broken file: a storage has two sizes");
    const Blob data = file.slice(at + 8, size);
    at += 8 + size;
    storage->bytes = reinterpret_cast<uintptr_t>(data.data) % 16 ? Blob::copy_of(data.text()) : data;
  }
  for (const auto& [key, pending] : storages)
    if (pending.size > 0 && !pending.storage->bytes.data)
      throw FileError("broken file: storage '" + key + "' is missing");
  return value;
}

}  // namespace

ArchiveReader::ArchiveReader(const Blob& file) : zip_(file) {
  // The folder's name is up to the writer; it is the one with data.pkl directly in it.
  const auto& names = zip_.names();
  const auto found = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with("/data.pkl") && name.find('/') == name.size() - 9;
  });
  if (found == names.end()) throw FileError("not a .pt file: the zip archive has no data.pkl");
  folder_ = found->substr(0, found->size() - 8);
  pickle_ = zip_.read(*found);
  if (zip_.has(folder_ + "byteorder")) {
    const auto order = zip_.read(folder_ + "byteorder");
    if (order.text() != "little" && order.text() != "big")
      throw FileError("broken file: its byte order is neither little nor big");
    swapped_ = order.text() == "big";
  }
}

std::shared_ptr<StorageRecord> ArchiveReader::storage(const std::string& key, const std::string& dtype,
                                                      const std::string& location, size_t size) {
  auto& known = storages_[key];
  if (!known) {
    Blob bytes = size == 0 ? Blob::allocate(0) : zip_.read(folder_ + "data/" + key);
    if (swapped_) bytes = swap_bytes(bytes, dtype);
    // Other writers may not align their records, and kernels rely on alignment.
    if (reinterpret_cast<uintptr_t>(bytes.data) % 16) bytes = Blob::copy_of(bytes.text());
    known = std::make_shared<StorageRecord>(StorageRecord{bytes, dtype, location});
  }
  if (known->dtype != dtype) throw FileError("broken file: storage '" + key + "' has two dtypes");
  if (known->bytes.size < size) throw FileError("broken file: storage '" + key + "' is shorter than its tensors say");
  return known;
}

Value load(const Blob& file) {
  if (!ZipReader::looks_like_zip(file.text())) return load_old(file);
  ArchiveReader archive(file);
  auto bytes = archive.pickle();
  return unpickle(bytes, [&](auto&&... args) { return archive.storage(args...); });
}

void write_archive(std::string_view pickle, const std::vector<std::shared_ptr<StorageRecord>>& storages,
                   const Sink& sink, const std::string& name) {
  ZipWriter zip(sink);
  zip.add(name + "/data.pkl", pickle);
  zip.add(name + "/byteorder", "little");
  for (size_t i = 0; i < storages.size(); ++i)
    zip.add(name + "/data/" + std::to_string(i), storages[i]->bytes.data, storages[i]->bytes.size);
  zip.add(name + "/version", "3\n");
  zip.finish();
}

void save(const Value& value, const Sink& sink, const std::string& name) {
  std::vector<std::shared_ptr<StorageRecord>> storages;
  std::unordered_map<const StorageRecord*, size_t> keys;
  const std::string stream = pickle(value, [&](const std::shared_ptr<StorageRecord>& storage) {
    const auto [found, fresh] = keys.emplace(storage.get(), storages.size());
    if (fresh) storages.push_back(storage);
    return std::to_string(found->second);
  });
  write_archive(stream, storages, sink, name);
}

void save(const Value& value, const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (const auto dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  if (name.empty()) name = "archive";
  write_file(path, [&](const Sink& sink) { save(value, sink, name); });
}

}  // namespace rush::serialize
