// DEFLATE's decompressor (RFC 1951). PyTorch stores tensors, but compresses the source code inside TorchScript
// archives; these few lines keep zlib off the list of what the library needs.
#include <array>

#include "serialize/zip.h"

namespace rush::serialize {
namespace {

[[noreturn]] void broken() { throw FileError("broken zip archive: a compressed record is damaged"); }

class Bits {
 public:
  explicit Bits(std::string_view bytes) : bytes_(bytes) {}
  uint32_t get(int count) {
    for (; held_ < count; held_ += 8) {
      if (at_ == bytes_.size()) broken();
      word_ |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[at_++])) << held_;
    }
    const auto value = static_cast<uint32_t>(word_ & ((1ull << count) - 1));
    word_ >>= count, held_ -= count;
    return value;
  }
  void to_byte() { get(held_ % 8); }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t word_ = 0;
  int held_ = 0;
};

// A canonical Huffman code: how many codes there are of each length, and the symbols in the order of their codes.
class Code {
 public:
  explicit Code(const std::vector<uint8_t>& lengths) : symbols_(lengths.size()) {
    for (const auto length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<uint16_t, 17> next{};
    int room = 1;
    for (size_t length = 1; length <= 15; ++length) {
      room = room * 2 - counts_[length];
      if (room < 0) broken();  // more codes than bits can tell apart
      next[length + 1] = static_cast<uint16_t>(next[length] + counts_[length]);
    }
    for (size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i]) symbols_[next[lengths[i]]++] = static_cast<uint16_t>(i);
  }
  uint32_t read(Bits& bits) const {
    int code = 0, first = 0, index = 0;
    for (size_t length = 1; length <= 15; ++length) {
      code |= static_cast<int>(bits.get(1));
      const int count = counts_[length];
      if (code - first < count) return symbols_[static_cast<size_t>(index + code - first)];
      index += count, first = (first + count) * 2, code *= 2;
    }
    broken();
  }

 private:
  std::array<uint16_t, 16> counts_{};
  std::vector<uint16_t> symbols_;
};

// Symbol s of a run (lengths from 3, distances from 1) stands for a base and some extra bits, whose number grows by one
// every `group` symbols after the first 2 * group.
uint32_t run(Bits& bits, uint32_t symbol, uint32_t group, uint32_t least) {
  if (symbol < 2 * group) return least + symbol;
  const uint32_t extra = symbol / group - 1;
  return least + ((group + symbol % group) << extra) + bits.get(static_cast<int>(extra));
}

std::pair<Code, Code> dynamic_codes(Bits& bits) {
  const size_t literals = bits.get(5) + 257, distances = bits.get(5) + 1, count = bits.get(4) + 4;
  static constexpr std::array<uint8_t, 19> order{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  std::vector<uint8_t> lengths(19);
  for (size_t i = 0; i < count; ++i) lengths[order[i]] = static_cast<uint8_t>(bits.get(3));
  const Code code(lengths);
  lengths.clear();
  while (lengths.size() < literals + distances) {
    const auto symbol = code.read(bits);
    if (symbol < 16) {
      lengths.push_back(static_cast<uint8_t>(symbol));
      continue;
    }
    if (symbol == 16 && lengths.empty()) broken();
    const uint8_t value = symbol == 16 ? lengths.back() : 0;
    lengths.insert(lengths.end(),
                   symbol == 16   ? 3 + bits.get(2)
                   : symbol == 17 ? 3 + bits.get(3)
                                  : 11 + bits.get(7),
                   value);
  }
  if (lengths.size() > literals + distances) broken();
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(literals);
  return {Code({lengths.begin(), middle}), Code({middle, lengths.end()})};
}

std::pair<Code, Code> fixed_codes() {
  std::vector<uint8_t> lengths(288, 8);
  std::fill(lengths.begin() + 144, lengths.begin() + 256, 9);
  std::fill(lengths.begin() + 256, lengths.begin() + 280, 7);
  return {Code(lengths), Code(std::vector<uint8_t>(30, 5))};
}

}  // namespace

std::string inflate(std::string_view packed, size_t size) {
  if (size / 1032 > packed.size()) broken();  // DEFLATE cannot do better than 1:1032
  std::string out;
  out.reserve(size);
  Bits bits(packed);
  const auto room = [&](size_t count) {
    if (count > size - out.size()) broken();
  };
  for (bool last = false; !last;) {
    last = bits.get(1);
    const auto kind = bits.get(2);
    if (kind == 3) broken();
    if (kind == 0) {
      bits.to_byte();
      const auto count = bits.get(16);
      if ((bits.get(16) ^ count) != 0xffff) broken();
      room(count);
      for (uint32_t i = 0; i < count; ++i) out.push_back(static_cast<char>(bits.get(8)));
      continue;
    }
    const auto [literals, distances] = kind == 1 ? fixed_codes() : dynamic_codes(bits);
    for (uint32_t symbol; (symbol = literals.read(bits)) != 256;) {
      if (symbol < 256) {
        room(1);
        out.push_back(static_cast<char>(symbol));
        continue;
      }
      if (symbol > 285) broken();
      const size_t length = symbol == 285 ? 258 : run(bits, symbol - 257, 4, 3);
      const auto code = distances.read(bits);
      if (code > 29) broken();
      const size_t distance = run(bits, code, 2, 1);
      if (distance > out.size()) broken();
      room(length);
      for (size_t i = 0; i < length; ++i) out.push_back(out[out.size() - distance]);
    }
  }
  if (out.size() != size) broken();
  return out;
}

}  // namespace rush::serialize
