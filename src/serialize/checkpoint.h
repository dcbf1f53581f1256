// .pt files: PyTorch's zip archives, and the older format of pickles one after another.
#pragma once

#include "serialize/pickle.h"
#include "serialize/value.h"

namespace rush::serialize {

/// Reads a .pt file that is in memory or mapped. The tensors' storages point into `file` wherever possible (its owner
/// is kept alive by them); storages of the other byte order, and those of the older format that lie at an odd address,
/// are copies. Throws FileError or PickleError.
Value load(const Blob& file);

/// Writes a .pt file that PyTorch reads. `name` is the folder that everything in the archive is in.
void save(const Value& value, const Sink& sink, const std::string& name = "archive");

/// The same, to a file that is written as a whole or not at all.
void save(const Value& value, const std::string& path);

/// An archive's parts, for a pickle that somebody else reads or writes: Python's own pickle module, with
/// weights_only=False.
class ArchiveReader {
 public:
  explicit ArchiveReader(const Blob& file);
  std::string_view pickle() const { return pickle_.text(); }
  /// The storage of a key; the same object each time. Throws FileError where it is missing or shorter than `size`.
  std::shared_ptr<StorageRecord> storage(const std::string& key, const std::string& dtype, const std::string& location,
                                         size_t size);

 private:
  ZipReader zip_;
  std::string folder_;
  Blob pickle_;
  bool swapped_ = false;
  std::unordered_map<std::string, std::shared_ptr<StorageRecord>> storages_;
};

/// Writes an archive around a finished pickle, whose storages have the keys "0", "1", ...
void write_archive(std::string_view pickle, const std::vector<std::shared_ptr<StorageRecord>>& storages,
                   const Sink& sink, const std::string& name);

}  // namespace rush::serialize
