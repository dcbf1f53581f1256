// Lists of integers: Dims owns them (five without an allocation), Ints looks at them, as string and string_view do.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <vector>

namespace rush {

namespace detail {
/// Loops, not memcmp: for the usual two or three integers the call would cost more than the comparison.
constexpr bool equal(const int64_t* a, size_t n, const int64_t* b, size_t m) {
  if (n != m) return false;
  for (size_t i = 0; i < n; ++i)
    if (a[i] != b[i]) return false;
  return true;
}
}  // namespace detail

/// A small vector of int64_t: sizes, strides, dimensions.
class Dims {
 public:
  Dims() = default;
  explicit Dims(size_t n, int64_t value = 0) {
    resize(n);
    std::fill_n(data(), n, value);
  }
  Dims(std::initializer_list<int64_t> l) : Dims(l.begin(), l.end()) {}
  template <class It>
  Dims(It first, It last) {
    resize(size_t(last - first));
    copy(first, size_, data());
  }
  Dims(const Dims& o) {
    if (o.capacity_ > kInline)
      assign(o);
    else
      copy_inline(o);
  }
  Dims(Dims&& o) noexcept { steal(o); }
  Dims& operator=(const Dims& o) {
    if (capacity_ <= kInline && o.capacity_ <= kInline)
      copy_inline(o);
    else if (this != &o)
      assign(o);
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) {
      if (capacity_ > kInline) delete[] heap_;
      steal(o);
    }
    return *this;
  }
  ~Dims() {
    if (capacity_ > kInline) delete[] heap_;
  }

  int64_t* data() { return capacity_ > kInline ? heap_ : inline_; }
  const int64_t* data() const { return capacity_ > kInline ? heap_ : inline_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t back() const { return data()[size_ - 1]; }
  void push_back(int64_t v) {
    resize(size_ + 1);
    data()[size_ - 1] = v;
  }
  void insert(size_t at, int64_t v) {
    resize(size_ + 1);
    std::memmove(data() + at + 1, data() + at, (size_ - 1 - at) * sizeof(int64_t));
    data()[at] = v;
  }
  void erase(size_t at) {
    std::memmove(data() + at, data() + at + 1, (size_ - 1 - at) * sizeof(int64_t));
    --size_;
  }
  void clear() { size_ = 0; }
  /// New elements are not set.
  void resize(size_t n) {
    if (n > capacity_) grow(n);
    size_ = uint32_t(n);
  }
  bool operator==(const Dims& o) const { return detail::equal(data(), size_, o.data(), o.size_); }

 private:
  static constexpr uint32_t kInline = 5;
  // One by one: elements that were stored a moment ago come out of the store buffer, which a wider load would have to
  // wait for.
  template <class It>
  static void copy(It from, uint32_t n, int64_t* to) {
    for (uint32_t i = 0; i < n; ++i) {
      int64_t v = from[i];
      asm("" : "+r"(v));  // else the compiler makes a vector or a call of it
      to[i] = v;
    }
  }
  void copy_inline(const Dims& o) {
    size_ = o.size_;
    copy(o.inline_, size_, inline_);
  }
  void assign(const Dims& o) {
    resize(o.size_);
    copy(o.data(), size_, data());
  }
  void grow(size_t n) {
    const size_t capacity = std::max<size_t>(n, 2 * size_t(capacity_));
    int64_t* fresh = new int64_t[capacity];
    std::copy(begin(), end(), fresh);
    if (capacity_ > kInline) delete[] heap_;
    heap_ = fresh;
    capacity_ = uint32_t(capacity);
  }
  void steal(Dims& o) {
    capacity_ = o.capacity_;
    if (capacity_ > kInline)
      heap_ = o.heap_, size_ = o.size_;
    else
      copy_inline(o);
    o.size_ = 0;
    o.capacity_ = kInline;
  }
  uint32_t size_ = 0, capacity_ = kInline;
  union {
    int64_t inline_[kInline];
    int64_t* heap_;
  };
};

/// A view of somebody's integers, for arguments: binds to braces, Dims and vectors. It owns nothing; keep a Dims.
class Ints {
 public:
  constexpr Ints() = default;
  constexpr Ints(const int64_t* data, size_t size) : data_(data), size_(size) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // as an argument it lives until the call returns
  constexpr Ints(std::initializer_list<int64_t> l) : data_(l.begin()), size_(l.size()) {}
#pragma GCC diagnostic pop
  Ints(const Dims& d) : data_(d.data()), size_(d.size()) {}
  Ints(const std::vector<int64_t>& v) : data_(v.data()), size_(v.size()) {}
  constexpr Ints(const int64_t& one) : data_(&one), size_(1) {}
  constexpr const int64_t* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const int64_t* begin() const { return data_; }
  constexpr const int64_t* end() const { return data_ + size_; }
  constexpr int64_t operator[](size_t i) const { return data_[i]; }
  constexpr int64_t back() const { return data_[size_ - 1]; }
  Ints slice(size_t first, size_t count) const { return {data_ + first, count}; }
  operator Dims() const { return Dims(begin(), end()); }
  Dims dims() const { return Dims(begin(), end()); }
  bool operator==(const Ints& o) const { return detail::equal(data_, size_, o.data_, o.size_); }

 private:
  const int64_t* data_ = nullptr;
  size_t size_ = 0;
};
/// Writes [2, 3], as PyTorch's messages do.
std::ostream& operator<<(std::ostream& out, Ints ints);
inline std::ostream& operator<<(std::ostream& out, const Dims& d) { return out << Ints(d); }

/// The product of the sizes, 1 for none.
inline int64_t product(Ints sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

}  // namespace rush
