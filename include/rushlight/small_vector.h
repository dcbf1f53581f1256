// A vector of a few objects without an allocation. For integers see dims.h.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>

namespace rush {

template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  explicit SmallVector(size_t n) { resize(n); }
  SmallVector(std::initializer_list<T> l) {
    reserve(l.size());
    for (const T& v : l) push_back(v);
  }
  SmallVector(const SmallVector& o) {
    reserve(o.size_);
    for (const T& v : o) push_back(v);
  }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  SmallVector& operator=(SmallVector o) noexcept {
    clear_storage();
    take(o);
    return *this;
  }
  ~SmallVector() { clear_storage(); }

  T* data() { return heap_ ? heap_ : inline_data(); }
  const T* data() const { return heap_ ? heap_ : const_cast<SmallVector*>(this)->inline_data(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& back() const { return data()[size_ - 1]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  void push_back(T v) {
    if (size_ == capacity_) reserve(2 * capacity_);
    new (data() + size_++) T(std::move(v));
  }
  void resize(size_t n) {
    reserve(n);
    while (size_ < n) new (data() + size_++) T();
    while (size_ > n) data()[--size_].~T();
  }
  void clear() { resize(0); }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    T* fresh = std::allocator<T>().allocate(n);
    std::uninitialized_move(begin(), end(), fresh);
    const size_t size = size_;
    clear_storage();
    heap_ = fresh;
    size_ = size;
    capacity_ = n;
  }

 private:
  T* inline_data() { return std::launder(reinterpret_cast<T*>(inline_)); }
  void clear_storage() {
    std::destroy(begin(), end());
    if (heap_) std::allocator<T>().deallocate(heap_, capacity_);
    heap_ = nullptr;
    size_ = 0;
    capacity_ = N;
  }
  void take(SmallVector& o) {
    if (o.heap_) {
      heap_ = std::exchange(o.heap_, nullptr);
    } else {
      std::uninitialized_move(o.begin(), o.end(), inline_data());
      std::destroy(o.begin(), o.end());
    }
    size_ = std::exchange(o.size_, 0);
    capacity_ = std::exchange(o.capacity_, N);
  }
  T* heap_ = nullptr;
  size_t size_ = 0, capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

}  // namespace rush
