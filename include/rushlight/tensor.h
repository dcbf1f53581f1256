// Tensor: an 8-byte handle on a counted TensorImpl. Copying a Tensor shares it; operators are in ops.h, and as methods.
//
//   Tensor x = rush::randn({2, 3}).requires_grad_();
//   Tensor y = (x * 2).sum();
//   y.backward();
//   std::cout << x.grad();
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rushlight/dims.h"
#include "rushlight/dtype.h"
#include "rushlight/intrusive.h"
#include "rushlight/storage.h"

namespace rush {

class Tensor;
struct AutogradMeta;  // autograd.h
struct Node;
class Generator;

using OptInts = std::optional<Ints>;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptScalar = std::optional<Scalar>;
using OptInt = std::optional<int64_t>;
using OptDouble = std::optional<double>;
using OptBool = std::optional<bool>;
using OptStr = std::optional<std::string_view>;
using OptMemoryFormat = std::optional<MemoryFormat>;
using OptLayout = std::optional<int64_t>;  // accepted and ignored: every tensor is strided

/// What made a view; all but One forbid that an in-place change of it is recorded.
enum class ViewOrigin : uint8_t {
  One,       // an operator with one result, or no view at all
  Many,      // one of several views that one call made
  Function,  // an autograd.Function, whose backward the change would go around
  NoGrad,
  Inference
};

/// What a Tensor points to: a window (sizes, strides, offset) on a storage. Users hold Tensors.
struct TensorImpl : Counted {
  Ref<Storage> storage;
  Dims sizes, strides;  // strides and offset count elements
  int64_t offset = 0;
  int64_t numel = 1;
  DType dtype = kFloat32;
  Device device;
  bool contiguous = true;
  bool wrapped_number = false;             // made from a Python number: weighs less in type promotion
  bool inference = false;                  // made in inference mode: never recorded
  bool untracked = false;                  // from .data: its in-place changes are not counted
  uint32_t view_version = 0;               // of the storage when this view's grad_fn was made
  Ref<TensorImpl> base;                    // of a differentiable view: the tensor it views
  std::unique_ptr<AutogradMeta> autograd;  // made when first needed
  std::atomic<void*> python{nullptr};      // this tensor's one Python object, if there is one
  bool owns_python = false;                // the object lives on through this tensor only
  ViewOrigin view_origin = ViewOrigin::One;

  TensorImpl();
  ~TensorImpl();
  static void destroy(TensorImpl* impl);
  static void* operator new(size_t bytes);
  static void operator delete(void* p, size_t bytes);
  /// Recomputes numel and contiguous after sizes or strides changed.
  void refresh();
};

/// Called when a TensorImpl that owns its Python object dies; set by the Python extension.
extern void (*release_python_object)(void* object);

/// A view of several tensors, for arguments: binds to braces and vectors.
class Tensors {
 public:
  Tensors() = default;
  constexpr Tensors(const Tensor* data, size_t size) : data_(data), size_(size) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // as an argument it lives until the call returns
  Tensors(std::initializer_list<Tensor> l) : data_(l.begin()), size_(l.size()) {}
#pragma GCC diagnostic pop
  Tensors(const std::vector<Tensor>& v);
  constexpr const Tensor* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Tensor* begin() const { return data_; }
  const Tensor* end() const;
  const Tensor& operator[](size_t i) const;

 private:
  const Tensor* data_ = nullptr;
  size_t size_ = 0;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  /// A 0-dim tensor that counts as a plain number in type promotion: lets `x * 2` and `add(x, 1.5)` be written.
  Tensor(const Scalar& number);
  template <class T>
  requires std::is_arithmetic_v<T> Tensor(T v) : Tensor(Scalar(v)) {}

  bool defined() const { return bool(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  int64_t dim() const { return int64_t(impl_->sizes.size()); }
  const Dims& sizes() const { return impl_->sizes; }
  const Dims& strides() const { return impl_->strides; }
  /// Negative `d` counts from the end. Throws IndexError.
  int64_t size(int64_t d) const;
  int64_t stride(int64_t d) const;
  int64_t numel() const { return impl_->numel; }
  int64_t storage_offset() const { return impl_->offset; }
  DType dtype() const { return impl_->dtype; }
  int64_t itemsize() const { return size_of(impl_->dtype); }
  Device device() const { return impl_->device; }
  bool is_contiguous() const { return impl_->contiguous; }
  bool is_contiguous(MemoryFormat format) const;
  bool is_floating_point() const { return is_floating(dtype()); }
  bool is_complex() const { return rush::is_complex(dtype()); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  const Ref<Storage>& storage() const { return impl_->storage; }

  /// The first element's address. Null for a meta tensor. What lies on a GPU the host must not read: see cuda.h.
  void* data_ptr() const {
    void* p = impl_->storage ? impl_->storage->data() : nullptr;
    return p ? static_cast<char*>(p) + impl_->offset * itemsize() : nullptr;
  }
  /// The same as T*. Throws NotImplementedError for a meta tensor, which has none.
  template <class T>
  T* data() const {
    if (is_meta()) [[unlikely]]
      raise_no_data();
    return static_cast<T*>(data_ptr());
  }

  uint32_t version() const { return impl_->storage ? impl_->storage->version() : 0; }
  void bump_version() const {
    if (impl_->storage) impl_->untracked ? impl_->storage->changed_unseen() : impl_->storage->bump_version();
  }

  // ---- autograd: see autograd.h ----
  bool requires_grad() const;
  /// Throws Error unless the dtype is floating or complex, or if this is not a leaf.
  Tensor& requires_grad_(bool value = true);
  bool is_leaf() const;
  Ref<Node> grad_fn() const;
  Tensor grad() const;
  void set_grad(const Tensor& g) const;
  /// Fills grad() of the leaves this tensor was computed from. `gradient` may be left out for one element.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// The same elements without history; shares memory.
  Tensor detach() const;

  /// The value of a one-element tensor, on a GPU when work on it is done. Throws Error for any other.
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }

#include "rushlight/methods.h"

 private:
  [[noreturn]] static void raise_no_data();
  Ref<TensorImpl> impl_;
};

inline Tensors::Tensors(const std::vector<Tensor>& v) : data_(v.data()), size_(v.size()) {}
inline const Tensor* Tensors::end() const { return data_ + size_; }
inline const Tensor& Tensors::operator[](size_t i) const { return data_[i]; }

/// PyTorch's text of a tensor.
std::ostream& operator<<(std::ostream& out, const Tensor& t);

// ---- shapes: what operators need to say what their result looks like ----

/// Sizes, dtype and device of a tensor, with strides where they are not the contiguous ones.
struct Meta {
  Dims sizes;
  DType dtype = kFloat32;
  std::optional<Device> device = {};  // default: that of the operator's first tensor
  std::optional<Dims> strides = {};
  bool pinned = false;  // CPU memory that GPUs reach: see cuda.h
};

/// Memory for `meta`, not set to anything. No autograd, no operator call.
Tensor allocate(const Meta& meta);
/// A tensor over the same storage. No autograd.
Tensor alias(const Tensor& t, Dims sizes, Dims strides, int64_t offset);
/// Strides of contiguous memory in row-major order.
Dims contiguous_strides(Ints sizes);
Dims strides_for(Ints sizes, MemoryFormat format);
/// Whether each element has its own place and there are no gaps.
bool is_dense(Ints sizes, Ints strides);
/// `dim` as a number from 0. Throws IndexError naming the allowed range unless -ndim <= dim < ndim (0-dim counts as 1).
int64_t wrap_dim(int64_t dim, int64_t ndim);
/// wrap_dim for each; throws Error if one occurs twice. Empty stands for all if `empty_is_all`.
Dims wrap_dims(Ints dims, int64_t ndim, bool empty_is_all = false);
/// The common shape of both. Throws Error where sizes differ and none is 1.
Dims broadcast(Ints a, Ints b);
/// Strides with which a tensor of `sizes` and `strides` is read as one of `target` sizes.
Dims broadcast_strides(Ints sizes, Ints strides, Ints target);
/// Strides of a view with other sizes on the same elements, or nothing if that needs a copy.
std::optional<Dims> view_strides(Ints sizes, Ints strides, Ints target);
/// `shape` with its -1 replaced. Throws Error unless the product is `numel`.
Dims infer_size(Ints shape, int64_t numel);
/// Gives the tensor other sizes, contiguous; its storage grows if it must. New elements are not set.
void resize(Tensor& t, Ints sizes);
/// Whether two tensors may share an element in memory.
bool overlaps(const Tensor& a, const Tensor& b);

/// PyTorch's type promotion over operands: dimensioned tensors before 0-dim tensors before numbers.
class Promotion {
 public:
  Promotion& operator()(const Tensor& t);
  DType dtype() const;

 private:
  DType dimensioned_ = kBool, zero_dim_ = kBool, number_ = kBool;
  bool any_[3] = {};
};

}  // namespace rush
