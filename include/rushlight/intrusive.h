// A reference-counted base and the pointer to it: one word, the count inside the object.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace rush {

class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

 private:
  template <class T>
  friend class Ref;
  mutable std::atomic<uint32_t> count_{0};
};

/// Whether Ref<T>::try_retain is used: set to true for a T right where it is declared.
template <class T>
inline constexpr bool held_weakly = false;

/// A shared, nullable pointer to a T that derives from Counted. T::destroy(T*) ends the last use.
///
/// Locked instructions are a good part of a small call, so the first and the last holder go without: nobody else can
/// change a count that no other holder has. Of what is held weakly, the last holder pays.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) {
    if (p && p->count_.load(std::memory_order_relaxed) == 0)
      p->count_.store(1, std::memory_order_relaxed);
    else
      retain();
  }
  Ref(const Ref& o) : p_(o.p_) { retain(); }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  Ref(const Ref<U>& o) : Ref(static_cast<T*>(o.get())) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { release(); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Ref& o) const { return p_ == o.p_; }
  /// Gives up the count it holds without dropping it; adopt() takes such a pointer back.
  T* leak() { return std::exchange(p_, nullptr); }
  /// A reference to an object that may be dying on another thread: empty if its count has reached zero.
  static Ref try_retain(T* p) {
    static_assert(held_weakly<T>);
    uint32_t n = p->count_.load(std::memory_order_relaxed);
    while (n != 0)
      if (p->count_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return adopt(p);
    return {};
  }
  static Ref adopt(T* p) {
    Ref r;
    r.p_ = p;
    return r;
  }

 private:
  void retain() const {
    if (p_) p_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (!p_) return;
    if ((!held_weakly<T> && p_->count_.load(std::memory_order_acquire) == 1) ||
        p_->count_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      T::destroy(p_);
  }
  T* p_ = nullptr;
};

}  // namespace rush
