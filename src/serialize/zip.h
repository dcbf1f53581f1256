// Zip archives as .pt files use them: a reader over bytes in memory (a mapped file as a rule) and a streaming writer.
//
// Ours rather than minizip's, because a .pt archive is not read through a stream: tensors point straight into the
// mapped file, which takes each entry's place in it, and the writer must put every entry's data on a multiple of 64
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rushlight/error.h"

namespace rush::serialize {

/// Malformed or unreadable archive: Python sees RuntimeError.
struct FileError : Error {
  using Error::Error;
};

/// Bytes and whoever keeps them alive: a mapped file, a buffer, a tensor's storage.
struct Blob {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  size_t size = 0;

  std::string_view text() const { return {reinterpret_cast<const char*>(data), size}; }
  /// The same owner's bytes [offset, offset + count). Throws FileError where they are not inside.
  Blob slice(size_t offset, size_t count) const;
  static Blob copy_of(std::string_view bytes);
  static Blob allocate(size_t size);
};

/// Maps a whole file, copy on write: what is written to the bytes stays in this process. Throws FileError, naming the
/// path, where it cannot be opened.
Blob map_file(const std::string& path);

class ZipReader {
 public:
  /// Reads the central directory. Throws FileError where the bytes are not a zip archive, or a broken one.
  explicit ZipReader(Blob archive);

  static bool looks_like_zip(std::string_view bytes) { return bytes.starts_with("PK\x03\x04"); }

  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  /// An entry's bytes: part of the archive where it is stored, a new buffer where it is deflated. Checksums are not
  /// compared: PyTorch can be told to write files without them.
  Blob read(const std::string& name) const;

 private:
  struct Entry {
    uint64_t header, packed, size;
    uint16_t method, flags;
  };
  Blob archive_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, Entry> entries_;
};

using Sink = std::function<void(const void* data, size_t size)>;

class ZipWriter {
 public:
  explicit ZipWriter(Sink sink) : sink_(std::move(sink)) {}
  /// Appends a stored entry whose data starts on a multiple of 64 bytes.
  void add(std::string_view name, const void* data, size_t size);
  void add(std::string_view name, std::string_view bytes) { add(name, bytes.data(), bytes.size()); }
  /// Writes the central directory. Call it once, last.
  void finish();

 private:
  void emit(std::string_view bytes);
  Sink sink_;
  uint64_t position_ = 0, count_ = 0;
  std::string directory_;
};

/// Writes a file as a whole or not at all: `body` writes to a temporary file in the same folder, which then takes the
/// target's name. An exception from `body`, or a full disk, leaves an existing target as it was.
void write_file(const std::string& path, const std::function<void(const Sink&)>& body);

/// The CRC-32 of zip and PNG.
uint32_t crc32(const void* data, size_t size);

/// Decompresses a raw DEFLATE stream (RFC 1951) of exactly `size` bytes. Throws FileError on anything else.
std::string inflate(std::string_view packed, size_t size);

}  // namespace rush::serialize
