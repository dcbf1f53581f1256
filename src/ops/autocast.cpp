// Autocast's state and its cast of a call's arguments. The casts are operators, so that gradients go through them.
#include "rushlight/autocast.h"

#include <unordered_map>

#include "rushlight/ops.h"
#include "rushlight/profiler.h"

namespace rush {

namespace {

struct State {
  std::array<bool, 2> enabled = {};
  DType dtype[2] = {kBFloat16, kFloat16};
  bool cache = true;
  int nesting = 0;
  struct Kept {
    Tensor leaf, cast;
    bool recorded;
  };
  std::unordered_map<const TensorImpl*, Kept> casts;
};
thread_local State state;

size_t place(DeviceType device) {
  check(device == DeviceType::CPU || device == DeviceType::CUDA,
        "autocast is available for the device types cpu and cuda");
  return device == DeviceType::CUDA;
}

/// The cast of a weight of which no gradient is asked, kept with its memory until that changes.
Tensor kept_cast(const Tensor& t, DType to) {
  Storage& storage = *t.storage();
  const KeptKey key{-1 - int64_t(to),  // kernels' own kinds are not negative
                    t.storage_offset(), t.numel()};
  if (const Ref<Storage> found = storage.find_kept(key)) {
    const Ref<TensorImpl> impl(new TensorImpl);
    impl->storage = found;
    impl->sizes = t.sizes();
    impl->strides = t.strides();
    impl->dtype = to;
    impl->refresh();
    return Tensor(impl);
  }
  const Tensor result = cast(t, to);
  if (storage.worth_keeping(result.storage()->bytes())) storage.keep(key, result.storage());
  return result;
}

Tensor cast_to(const Tensor& t, DType to) {
  if (t.dtype() == to) return t;
  const bool keep =
      state.cache && is_half(to) && t.dtype() == kFloat32 && t.requires_grad() && t.is_leaf() && !t.impl()->base;
  if (!keep) return cast(t, to);
  if (!grad_enabled() && t.is_cpu() && t.is_contiguous()) return kept_cast(t, to);
  State::Kept& kept = state.casts[t.impl()];
  if (!kept.cast.defined() || kept.cast.dtype() != to || kept.recorded != grad_enabled())
    kept = {t, cast(t, to), grad_enabled()};
  return kept.cast;
}

}  // namespace

namespace autocast {

bool is_enabled(DeviceType device) { return state.enabled[place(device)]; }
void set_enabled(DeviceType device, bool enabled) {
  state.enabled[place(device)] = enabled;
  watch();
}
void watch() { modes().autocast = state.enabled[0] || state.enabled[1] || profiler::current; }
DType dtype(DeviceType device) { return state.dtype[place(device)]; }
void set_dtype(DeviceType device, DType dtype) {
  check<ValueError>(is_half(dtype), "autocast: expected float16 or bfloat16, got ", dtype);
  state.dtype[place(device)] = dtype;
}
bool is_cache_enabled() { return state.cache; }
void set_cache_enabled(bool enabled) { state.cache = enabled; }
void clear_cache() { state.casts.clear(); }
int increment_nesting() { return ++state.nesting; }
int decrement_nesting() { return --state.nesting; }

bool run(const OpInfo& op, const Value* args, Results& out) {
  const size_t count = op.schema->count;
  const auto each = [&](auto&& f) {
    for (size_t i = 0; i < count; ++i) {
      if (args[i].tag == Value::Tag::Tensor)
        f(args[i].tensor());
      else if (args[i].tag == Value::Tag::Tensors)
        for (const Tensor& t : args[i].tensors())
          if (t.defined()) f(t);
    }
  };
  bool cuda = false;
  size_t tensors = 0;
  each([&](const Tensor& t) { cuda |= t.device().is_cuda(), ++tensors; });
  const Autocast policy = cuda ? op.autocast.cuda : op.autocast.cpu;
  if (!state.enabled[cuda] || policy == Autocast::as_input || tensors == 0) return false;
  check(policy != Autocast::unsafe,
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Many models use a "
        "sigmoid layer right before the binary cross entropy layer. In this case, combine the two layers using "
        "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss, which are safe to "
        "autocast.");
  const auto takes_part = [&](const Tensor& t) {
    return t.defined() && t.device().is_cuda() == cuda && (t.device().is_cuda() || t.device().is_cpu()) &&
           t.is_floating_point() && t.dtype() != kFloat64 && !t.impl()->wrapped_number;
  };
  DType to = kFloat32;
  if (policy == Autocast::half) to = state.dtype[cuda];
  if (policy == Autocast::widest) {
    to = state.dtype[cuda];
    each([&](const Tensor& t) {
      if (takes_part(t) && t.dtype() != to) to = kFloat32;
    });
  }
  std::vector<Tensor> changed;  // what the new Values point to, so it must not grow
  size_t room = 0;
  for (size_t i = 0; i < count; ++i) room += args[i].tag == Value::Tag::Tensors ? args[i].size : 1;
  changed.reserve(room);
  const auto changed_one = [&](const Tensor& t) { changed.push_back(takes_part(t) ? cast_to(t, to) : t); };
  SmallVector<Value, 8> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = args[i];
    if (args[i].tag == Value::Tag::Tensor) {
      changed_one(args[i].tensor());
      values[i] = Value(changed.back());
    } else if (args[i].tag == Value::Tag::Tensors) {
      const Tensors list = args[i].tensors();
      const size_t first = changed.size();
      for (const Tensor& t : list) changed_one(t);
      values[i] = Value(Tensors(changed.data() + first, list.size()));
    }
  }
  const NoAutocast inside;  // the operators inside get what they were written for
  dispatch(op, values.data(), out);
  return true;
}

}  // namespace autocast

NoAutocast::NoAutocast() : before(std::exchange(state.enabled, {})) { autocast::watch(); }
NoAutocast::~NoAutocast() {
  state.enabled = before;
  autocast::watch();
}

AutocastGuard::AutocastGuard(DeviceType device, OptDType dtype, bool enabled, bool cache_enabled)
    : device_(device),
      enabled_(autocast::is_enabled(device)),
      cache_enabled_(autocast::is_cache_enabled()),
      dtype_(autocast::dtype(device)) {
  if (dtype) autocast::set_dtype(device, *dtype);
  autocast::set_enabled(device, enabled);
  autocast::set_cache_enabled(cache_enabled);
  autocast::increment_nesting();
}

AutocastGuard::~AutocastGuard() {
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  autocast::set_enabled(device_, enabled_);
  state.dtype[place(device_)] = dtype_;
  autocast::set_cache_enabled(cache_enabled_);
}

}  // namespace rush
