// Tensor and its storage: making them, and the little of Tensor that is not an operator.
#include "rushlight/tensor.h"

#include "cuda/allocator.h"
#include "cuda/runtime.h"
#include "rushlight/allocator.h"
#include "rushlight/autograd.h"
#include "rushlight/ops.h"
#include "rushlight/profiler.h"
#include "tensor/sizes.h"

namespace rush {

void Tensor::raise_no_data() {
  raise<NotImplementedError>(
      "Cannot copy out of meta tensor; no data! Its shape is known on the meta device, what "
      "depends on its elements is not");
}

void (*release_python_object)(void*) = nullptr;
const Tensor undefined_tensor;

// ---- storage ----

namespace {
constexpr int64_t kHeader = 64;     // what a Storage takes in front of its data, which stays aligned
constexpr int64_t kMostRoom = 960;  // with it, the largest block that is cut without waste

/// What a storage that has become smaller does in the end: its memory was kept, since tensors may still look at it.
struct FreeAll {
  void* data;
  int64_t bytes;
  void operator()() const { cpu_free(data, size_t(bytes)); }
};
}  // namespace

Ref<Storage> Storage::allocate(int64_t bytes, Device device) {
  static_assert(sizeof(Storage) <= kHeader);
  const bool here = device.is_cpu() && bytes <= kMostRoom;
  auto* block = static_cast<std::byte*>(cpu_allocate(size_t(kHeader + (here ? bytes : 0))));
  void* data = nullptr;
  if (here && bytes > 0) {
    data = block + kHeader;
  } else if (!device.is_meta() && bytes > 0) {
    try {
      data = device.is_cpu() ? cpu_allocate(size_t(bytes)) : cuda::allocate(device.index, size_t(bytes));
    } catch (...) {
      cpu_free(block, kHeader);
      throw;
    }
  }
  auto* s = new (block) Storage(data, bytes, device);
  s->room_ = here ? uint32_t(bytes) : 0;
  return Ref<Storage>(s);
}

Ref<Storage> Storage::wrap(void* data, int64_t bytes, Device device, std::function<void()> release) {
  auto* s = new (cpu_allocate(kHeader)) Storage(data, bytes, device);
  s->borrowed_ = true;
  if (release) s->release_ = std::make_unique<std::function<void()>>(std::move(release));
  return Ref<Storage>(s);
}

void Storage::free_data() {
  if (device_.is_cuda())
    cuda::free(device_.index, data_);
  else if (data_ && data_ != reinterpret_cast<std::byte*>(this) + kHeader)
    cpu_free(data_, size_t(bytes_));
}

Storage::~Storage() {
  forget_kept();
  if (!borrowed_)
    free_data();
  else if (release_)
    (*release_)();
}

void Storage::destroy(Storage* s) {
  const uint32_t room = s->room_;
  s->~Storage();
  cpu_free(s, size_t(kHeader + room));
}

bool Storage::resizable() const {
  return !exported_ &&
         (!borrowed_ || (release_ && (release_->target<FreeAll>() || release_->target<profiler::Counted>())));
}

void Storage::resize(int64_t bytes) {
  check(resizable(), "Trying to resize storage that is not resizable");
  changed_unseen();
  if (const auto* counted = release_ ? release_->target<profiler::Counted>() : nullptr) {
    data_ = counted->resize(bytes);
    bytes_ = bytes;
    return;
  }
  const FreeAll* const kept = release_ ? release_->target<FreeAll>() : nullptr;
  const bool here = data_ == reinterpret_cast<std::byte*>(this) + kHeader;
  const int64_t there = kept ? kept->bytes : here ? room_ : bytes_;
  if (device_.is_cpu() && bytes > there) {
    void* fresh = cpu_allocate(size_t(bytes));
    if (data_) std::memcpy(fresh, data_, size_t(there));
    kept ? (*release_)() : free_data();
    release_ = nullptr;
    borrowed_ = false;
    data_ = fresh;
  } else if (device_.is_cuda() && bytes > bytes_) {
    void* fresh = cuda::allocate(device_.index, size_t(bytes));
    if (data_)
      cuda::runtime().copy(device_.index, cuda::current_stream(device_.index).handle(), fresh,
                           cuda::Runtime::Where::Device, data_, cuda::Runtime::Where::Device, size_t(bytes_));
    free_data();
    data_ = fresh;
  } else if (device_.is_cpu() && bytes < bytes_ && !kept && !here) {
    release_ = std::make_unique<std::function<void()>>(FreeAll{data_, bytes_});
    borrowed_ = true;
  }
  bytes_ = bytes;
}

void cuda::record_stream(const Tensor& t, const Stream& stream) {
  check(t.is_cuda(), "record_stream: the tensor is on ", t.device(), ", not on a GPU");
  record_stream(t.device().index, t.storage()->data(), stream);
}

// ---- impl ----

TensorImpl::TensorImpl() = default;
TensorImpl::~TensorImpl() = default;
void TensorImpl::destroy(TensorImpl* impl) {
  if (impl->owns_python && release_python_object) release_python_object(impl->python.exchange(nullptr));
  delete impl;
}
void* TensorImpl::operator new(size_t bytes) { return cpu_allocate(bytes); }
void TensorImpl::operator delete(void* p, size_t bytes) { cpu_free(p, bytes); }

void TensorImpl::refresh() {
  numel = 1;
  contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != numel) contiguous = false;
    check(!__builtin_mul_overflow(numel, sizes[i], &numel) && numel < kMostElements,
          "the number of elements overflows with sizes=", sizes);
  }
  if (numel == 0) contiguous = true;
}

Tensor allocate(const Meta& meta) {
  Ref<TensorImpl> impl(new TensorImpl);
  impl->dtype = meta.dtype;
  impl->device = indexed(meta.device.value_or(kCPU));
  impl->sizes = meta.sizes;
  const int64_t numel = count_elements(meta.sizes);
  if (meta.strides) {
    impl->strides = *meta.strides;
    impl->refresh();
  } else {
    impl->strides = contiguous_strides(meta.sizes);
    impl->numel = numel;
  }
  impl->inference = modes().inference;
  const int64_t reach = meta.strides ? extent(impl->sizes, impl->strides) : numel;
  const int64_t bytes = reach * size_of(meta.dtype);
  if (meta.pinned) {
    check(impl->device.is_cpu(), "only a CPU tensor can be pinned, not one on ", impl->device);
    void* data = cuda::allocate_pinned(size_t(bytes));
    impl->storage = Storage::wrap(data, bytes, kCPU, [data] { cuda::free_pinned(data); });
  } else {
    impl->storage = Storage::allocate(bytes, impl->device);
    if (profiler::current) [[unlikely]]
      impl->storage = profiler::counted(std::move(impl->storage));
  }
  return Tensor(std::move(impl));
}

namespace {
Ref<TensorImpl> share(const TensorImpl& from, int64_t offset) {
  Ref<TensorImpl> impl(new TensorImpl);
  impl->storage = from.storage;
  impl->dtype = from.dtype;
  impl->device = from.device;
  impl->offset = offset;
  impl->untracked = from.untracked;
  impl->inference = from.inference;
  return impl;
}
}  // namespace

Tensor alias(const Tensor& t, Dims sizes, Dims strides, int64_t offset) {
  Ref<TensorImpl> impl = share(*t.impl(), offset);
  impl->sizes = std::move(sizes);
  impl->strides = std::move(strides);
  impl->refresh();
  return Tensor(std::move(impl));
}

Tensor alias_contiguous(const Tensor& t, const Dims& sizes) {
  Ref<TensorImpl> impl = share(*t.impl(), t.storage_offset());
  impl->numel = t.numel();
  impl->sizes = sizes;
  impl->strides.resize(sizes.size());
  int64_t* const strides = impl->strides.data();
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return Tensor(std::move(impl));
}

Tensor real_view(const Tensor& t) {
  if (!t.is_complex()) return t;
  Dims sizes = t.sizes(), strides = t.strides();
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  Tensor parts = alias(t, std::move(sizes), std::move(strides), 2 * t.storage_offset());
  parts.impl()->dtype = real_of(t.dtype());
  return parts;
}

Tensor::Tensor(const Scalar& number) {
  const DType wide = number.is_float() ? kFloat64 : number.is_complex() ? kComplex128 : number.dtype();
  *this = allocate({{}, wide});
  impl_->wrapped_number = true;
  impl_->inference = false;
  for_all(wide, [&]<class T>() { *data<T>() = number.to<T>(); });
}

int64_t Tensor::size(int64_t d) const {
  check<IndexError>(dim() > 0, "dimension specified as ", d, " but tensor has no dimensions");
  return sizes()[wrap_dim(d, dim())];
}
int64_t Tensor::stride(int64_t d) const {
  check<IndexError>(dim() > 0, "dimension specified as ", d, " but tensor has no dimensions");
  return strides()[wrap_dim(d, dim())];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return is_contiguous();
  if (size_t(dim()) != (format == MemoryFormat::ChannelsLast ? 4u : 5u)) return false;
  const Dims want = strides_for(sizes(), format);
  for (int64_t d = 0; d < dim(); ++d)
    if (sizes()[d] != 1 && strides()[d] != want[d]) return false;
  return true;
}

template <class T>
static Scalar number_of(T v) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return Scalar(int64_t(v));
  else
    return Scalar(v);
}

Scalar Tensor::item() const {
  check(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
  check(!is_meta(), "Tensor.item() cannot be called on meta tensors");
  if (is_cuda()) {
    Tensor here = allocate({{}, dtype()});
    cuda::read(device().index, data_ptr(), here.data_ptr(), size_t(itemsize()));
    return here.item();
  }
  return for_all(dtype(), [&]<class T>() { return number_of(*data<T>()); });
}

}  // namespace rush
