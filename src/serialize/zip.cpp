// The zip format (APPNOTE 6.3.x: local headers, central directory, zip64) and the files it is read from and written to.
#include "serialize/zip.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace rush::serialize {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr uint32_t kWide = 0xffffffff;  // this field's value is in the zip64 extra field instead
constexpr size_t kAlignment = 64;

[[noreturn]] void broken(const std::string& what) { throw FileError("broken zip archive: " + what); }

// Little-endian fields read one after the other, never past the end.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    if (bytes_.size() < sizeof(T)) broken("a header is cut off");
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(static_cast<T>(static_cast<uint8_t>(bytes_[i])) << 8 * i);
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view take(size_t count) {
    if (bytes_.size() < count) broken("a header is cut off");
    const auto taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

std::string_view tail(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size()) broken("an offset points outside of the file");
  return bytes.substr(offset);
}

template <class T>
void put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(value >> 8 * i & 0xff));
}

uint32_t narrow(uint64_t value) { return value >= kWide ? kWide : static_cast<uint32_t>(value); }

std::string failure(const std::string& what, const std::string& path) {
  return what + " '" + path + "': " + std::strerror(errno);
}

}  // namespace

Blob Blob::slice(size_t offset, size_t count) const {
  if (offset > size || count > size - offset) throw FileError("a record reaches past the end of the file");
  return {owner, data + offset, count};
}

Blob Blob::allocate(size_t size) {
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(::operator new(size, std::align_val_t(kAlignment))),
                                    [](std::byte* p) { ::operator delete(p, std::align_val_t(kAlignment)); });
  auto* const data = memory.get();
  return {std::move(memory), data, size};
}

Blob Blob::copy_of(std::string_view bytes) {
  Blob blob = allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(blob.data, bytes.data(), bytes.size());
  return blob;
}

Blob map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw FileError(failure("cannot open", path));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw FileError("cannot read '" + path + "': it is not a regular file");
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    ::close(fd);
    return Blob::allocate(0);
  }
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  const std::string problem = data == MAP_FAILED ? failure("cannot map", path) : "";
  ::close(fd);
  if (data == MAP_FAILED) throw FileError(problem);
  return {std::shared_ptr<void>(data, [size](void* p) { ::munmap(p, size); }), static_cast<std::byte*>(data), size};
}

ZipReader::ZipReader(Blob archive) : archive_(std::move(archive)) {
  const auto bytes = archive_.text();
  // The end record is 22 bytes and a comment of at most 65535.
  const auto end = bytes.rfind(std::string_view("PK\x05\x06", 4));
  if (end == std::string_view::npos || bytes.size() - end > 22 + 65535)
    throw FileError("not a zip archive, or one that is cut off: the central directory is missing");
  Fields record(bytes.substr(end + 4));
  record.take(6);
  uint64_t count = record.get<uint16_t>(), size = record.get<uint32_t>(), offset = record.get<uint32_t>();
  record.take(record.get<uint16_t>());  // the comment, to see that it is all there
  if (end >= 20) {
    Fields locator(bytes.substr(end - 20, 20));
    if (locator.get<uint32_t>() == kLocator64) {
      locator.get<uint32_t>();
      Fields wide(tail(bytes, locator.get<uint64_t>()));
      if (wide.get<uint32_t>() != kEnd64) broken("its zip64 end record is not where it should be");
      wide.take(28);
      count = wide.get<uint64_t>(), size = wide.get<uint64_t>(), offset = wide.get<uint64_t>();
    }
  }
  Fields directory(tail(bytes, offset).substr(0, size));
  for (; count > 0; --count) {
    if (directory.get<uint32_t>() != kCentral) broken("its central directory has a wrong signature");
    Entry entry{};
    directory.take(4);
    entry.flags = directory.get<uint16_t>();
    entry.method = directory.get<uint16_t>();
    directory.take(8);
    entry.packed = directory.get<uint32_t>();
    entry.size = directory.get<uint32_t>();
    const auto name_size = directory.get<uint16_t>(), extra_size = directory.get<uint16_t>(),
               comment_size = directory.get<uint16_t>();
    directory.take(8);
    entry.header = directory.get<uint32_t>();
    std::string name(directory.take(name_size));
    for (Fields extra(directory.take(extra_size)); !extra.empty();) {
      const auto id = extra.get<uint16_t>();
      Fields field(extra.take(extra.get<uint16_t>()));
      if (id != 1) continue;
      for (auto* value : {&entry.size, &entry.packed, &entry.header})
        if (*value == kWide) *value = field.get<uint64_t>();
    }
    directory.take(comment_size);
    if (entries_.emplace(name, entry).second) names_.push_back(std::move(name));
  }
}

Blob ZipReader::read(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw FileError("the archive has no record '" + name + "'");
  const Entry& entry = found->second;
  const auto bytes = tail(archive_.text(), entry.header);
  Fields header(bytes);
  if (header.get<uint32_t>() != kLocal) broken("the header of '" + name + "' is not where it should be");
  header.take(22);
  const size_t name_size = header.get<uint16_t>(), extra_size = header.get<uint16_t>();
  // No overflow: tail() has shown that entry.header is at most the file's size.
  const auto packed = archive_.slice(entry.header + 30 + name_size + extra_size, entry.packed);
  if (entry.flags & 1) throw FileError("record '" + name + "' is encrypted");
  if (entry.method == 0) {
    if (entry.packed != entry.size) broken("'" + name + "' is stored, yet has two sizes");
    return packed;
  }
  if (entry.method == 8) return Blob::copy_of(inflate(packed.text(), entry.size));
  throw FileError("record '" + name + "' is compressed by method " + std::to_string(entry.method) +
                  "; only stored and deflated records can be read");
}

void ZipWriter::emit(std::string_view bytes) {
  sink_(bytes.data(), bytes.size());
  position_ += bytes.size();
}

void ZipWriter::add(std::string_view name, const void* data, size_t size) {
  const uint64_t start = position_;
  const uint32_t sum = crc32(data, size);
  // Signature and attributes aside, both headers have the same fields. General flag 0x800: the name is UTF-8.
  const auto common = [&](std::string& out, size_t extra) {
    put<uint16_t>(out, 45), put<uint16_t>(out, 0x800), put<uint16_t>(out, 0);
    put<uint32_t>(out, 0x00210000);  // 1980-01-01: the same values give the same file
    put<uint32_t>(out, sum), put<uint32_t>(out, narrow(size)), put<uint32_t>(out, narrow(size));
    put<uint16_t>(out, static_cast<uint16_t>(name.size())), put<uint16_t>(out, static_cast<uint16_t>(extra));
  };
  std::string wide_sizes;
  if (size >= kWide) put<uint64_t>(wide_sizes, size), put<uint64_t>(wide_sizes, size);

  // PyTorch pads with an extra field "FB" too; four bytes are its own header.
  const size_t fixed = start + 30 + name.size() + (wide_sizes.empty() ? 0 : 20) + 4;
  const size_t padding = (kAlignment - fixed % kAlignment) % kAlignment;
  std::string local;
  put<uint32_t>(local, kLocal);
  common(local, (wide_sizes.empty() ? 0 : 20) + 4 + padding);
  local += name;
  if (!wide_sizes.empty()) put<uint16_t>(local, 1), put<uint16_t>(local, 16), local += wide_sizes;
  put<uint16_t>(local, 0x4246), put<uint16_t>(local, static_cast<uint16_t>(padding));
  local.append(padding, 'Z');
  emit(local);
  sink_(data, size);
  position_ += size;

  std::string wide = wide_sizes;
  if (start >= kWide) put<uint64_t>(wide, start);
  put<uint32_t>(directory_, kCentral), put<uint16_t>(directory_, 45);
  common(directory_, wide.empty() ? 0 : 4 + wide.size());
  directory_.append(10, '\0');  // comment size, disk, internal and external attributes
  put<uint32_t>(directory_, narrow(start));
  directory_ += name;
  if (!wide.empty())
    put<uint16_t>(directory_, 1), put<uint16_t>(directory_, static_cast<uint16_t>(wide.size())), directory_ += wide;
  ++count_;
}

void ZipWriter::finish() {
  const uint64_t start = position_, size = directory_.size();
  std::string end = std::move(directory_);
  if (start >= kWide || count_ >= 0xffff) {
    put<uint32_t>(end, kEnd64), put<uint64_t>(end, 44), put<uint16_t>(end, 45), put<uint16_t>(end, 45);
    put<uint32_t>(end, 0), put<uint32_t>(end, 0), put<uint64_t>(end, count_), put<uint64_t>(end, count_);
    put<uint64_t>(end, size), put<uint64_t>(end, start);
    put<uint32_t>(end, kLocator64), put<uint32_t>(end, 0), put<uint64_t>(end, start + size), put<uint32_t>(end, 1);
  }
  const auto count = static_cast<uint16_t>(std::min<uint64_t>(count_, 0xffff));
  put<uint32_t>(end, kEnd), put<uint32_t>(end, 0), put<uint16_t>(end, count), put<uint16_t>(end, count);
  put<uint32_t>(end, narrow(size)), put<uint32_t>(end, narrow(start)), put<uint16_t>(end, 0);
  emit(end);
}

void write_file(const std::string& path, const std::function<void(const Sink&)>& body) {
  // A symbolic link keeps pointing where it did, and a device or a pipe is written to as it is.
  std::string target = path;
  if (char* const real = ::realpath(path.c_str(), nullptr)) target = real, std::free(real);
  struct stat info {};
  const bool exists = ::stat(target.c_str(), &info) == 0, in_place = exists && !S_ISREG(info.st_mode);
  std::string temporary = in_place ? target : target + ".XXXXXX";
  const int fd = in_place ? ::open(target.c_str(), O_WRONLY | O_CLOEXEC) : ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) throw FileError(failure("cannot write", path));
  try {
    body([&](const void* data, size_t size) {
      for (auto* bytes = static_cast<const char*>(data); size > 0;) {
        const auto written = ::write(fd, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw FileError(failure("cannot write", path));
        bytes += written, size -= static_cast<size_t>(written);
      }
    });
    if (!in_place) {
      // mkostemp's files are private; give the permissions that open() would have given, or those of the file replaced.
      const mode_t mask = ::umask(0);
      ::umask(mask);
      if (::fchmod(fd, exists ? info.st_mode & 07777 : 0666 & ~mask) != 0 ||
          ::rename(temporary.c_str(), target.c_str()) != 0)
        throw FileError(failure("cannot write", path));
    }
  } catch (...) {
    ::close(fd);
    if (!in_place) ::unlink(temporary.c_str());
    throw;
  }
  if (::close(fd) != 0) throw FileError(failure("cannot write", path));
}

}  // namespace rush::serialize
