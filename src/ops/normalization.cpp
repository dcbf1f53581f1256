// Normalizations. Each has an operator that also returns the statistics and has a fused gradient; where the gradient
// itself is to be differentiated, it is written in differentiable operators instead.
//
// Note [Statistics] Half types are normalized in float: mean and rstd (one over the standard deviation) are float then.
#include "kernels/cpu/normalization.h"

#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/reductions.h"
#include "kernels/cuda/normalization.cuh"
#include "kernels/cuda/tensors.h"
#include "ops/reduce.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

void check_floating(const Tensor& x, const char* kernel) {
  check<NotImplementedError>(is_floating(x.dtype()), "\"", kernel, "\" not implemented for '", scalar_name(x.dtype()),
                             "'");
}
DType statistics_dtype(const Tensor& x) { return x.dtype() == kFloat64 ? kFloat64 : kFloat32; }
/// As a kernel wants it: contiguous, of this dtype; undefined stays so.
Tensor plain(const Tensor& x, DType t) { return !x.defined() ? x : contiguous(x.dtype() == t ? x : cast(x, t)); }
/// Memory for a kernel's result that goes to `out` by finish_result.
Tensor result_memory(const Tensor& out, DType t) {
  return out.dtype() == t && out.is_contiguous() ? out : allocate({out.sizes(), t, out.device(), {}});
}
void finish_result(Tensor& out, const Tensor& result) {
  if (!result.is_same(out)) in_place(copy, out, result);
}
/// What the gradients rely on, whoever calls them: a gradient shaped as x, statistics in the dtype that is computed in.
void check_backward(const Tensor& g, const Tensor& x,
                    std::initializer_list<std::pair<const Tensor*, int64_t>> statistics, const Tensor& w,
                    int64_t parameters) {
  check(Ints(g.sizes()) == Ints(x.sizes()), "expected a gradient of shape ", x.sizes(), ", got ", g.sizes());
  for (const auto& [t, n] : statistics)
    check(!t->defined() || (t->numel() == n && t->dtype() == statistics_dtype(x) && t->is_contiguous()), "expected ", n,
          " contiguous statistics of dtype ", statistics_dtype(x), ", got ", t->defined() ? t->sizes() : Dims());
  check(!w.defined() || w.numel() == parameters, "expected a weight of ", parameters, " elements, got ",
        w.defined() ? w.sizes() : Dims());
}
Tensor times(const Tensor& x, const Tensor& w) { return w.defined() ? x * w : x; }

// ---- layer and rms norm

Dims trailing(const Tensor& x, Ints shape, bool rms) {
  check(!shape.empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
        "but got normalized_shape = ",
        shape);
  const int64_t lead = x.dim() - int64_t(shape.size());
  if (lead < 0 || Ints(x.sizes()).slice(size_t(lead), shape.size()) != shape) {
    std::string wanted;
    for (int64_t s : shape) wanted += ", " + std::to_string(s);
    raise("Given normalized_shape=", shape, ", expected input with shape [*", rms ? wanted.substr(2) : wanted,
          "], but got input of size", x.sizes());
  }
  Dims dims;
  for (int64_t d = lead; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}
void check_parameter(const Tensor& p, Ints shape, const char* name) {
  check(!p.defined() || Ints(p.sizes()) == shape, "Expected ", name,
        " to be of same shape as normalized_shape, but got ", name, " of shape ",
        p.defined() ? Ints(p.sizes()) : Ints(), " and normalized_shape = ", shape);
}
Dims statistics_shape(const Tensor& x, Ints shape) {
  Dims sizes = x.sizes();
  for (size_t i = sizes.size() - shape.size(); i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}

/// The gradients of y = n * w + b for n = (x - mean) * rstd over `dims`, in differentiable operators. `w` broadcasts
/// against x; the engine sums its gradient.
Grads normalized_backward(const Tensor& g, const Tensor& x, const Dims& dims, const Tensor& w, double eps, bool rms) {
  const Tensor centred = rms ? x : x - mean(x, OptInts(dims), true);
  const Tensor r = 1 / sqrt(mean(centred * centred, OptInts(dims), true) + eps);
  const Tensor n = centred * r, h = times(g, w);
  Tensor inner = h - n * mean(h * n, OptInts(dims), true);
  if (!rms) inner = inner - mean(h, OptInts(dims), true);
  return {r * inner, g * n, g};
}

// ---- group norm

int64_t check_group_norm(const Tensor& x, int64_t groups, const Tensor& w, const Tensor& b) {
  check(x.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", x.dim());
  check(groups > 0, "Expected num_groups to be greater than 0, got ", groups);
  const int64_t channels = x.sizes()[1];
  check(channels > 0, "Expected at least one channel, but got input of shape ", x.sizes());
  check(channels % groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of "
        "shape ",
        x.sizes(), " and num_groups=", groups);
  for (const Tensor* p : {&w, &b})
    check(!p->defined() || (p->dim() == 1 && p->numel() == channels), "Expected ", p == &w ? "weight" : "bias",
          " to be a vector of size equal to the number of channels in input, but got ", p == &w ? "weight" : "bias",
          " of shape ", p->defined() ? Ints(p->sizes()) : Ints(), " and input of shape ", x.sizes());
  return channels;
}
/// A value for each channel, to broadcast against x.
Tensor channelwise(const Tensor& p, int64_t ndim) {
  if (!p.defined()) return p;
  Dims sizes(size_t(ndim), 1);
  sizes[1] = p.numel();
  return reshape(p, sizes);
}

// ---- batch norm

struct Layout {
  int64_t batch, channels, size;
  bool last;    // channels are the innermost dimension in memory
  bool direct;  // x lies as a kernel wants it
};
int64_t channels_of(const Tensor& x) { return x.dim() > 1 ? x.sizes()[1] : 0; }
Layout layout_of(const Tensor& x) {
  Layout l{x.sizes()[0], channels_of(x), 1, false, x.is_contiguous()};
  for (int64_t d = 2; d < x.dim(); ++d) l.size *= x.sizes()[d];
  if (!l.direct && x.dim() > 2 && x.strides()[1] == 1) {
    Dims order{0};
    for (int64_t d = 2; d < x.dim(); ++d) order.push_back(d);
    order.push_back(1);
    Dims sizes, strides;
    for (int64_t d : order) sizes.push_back(x.sizes()[d]), strides.push_back(x.strides()[d]);
    l.last = l.direct = contiguous_strides(sizes) == strides;
  }
  if (l.size == 1) l.last = true;  // the same in memory, and rows of channels are the longer ones
  return l;
}
Dims all_but_channels(int64_t ndim) {
  Dims dims{0};
  for (int64_t d = 2; d < ndim; ++d) dims.push_back(d);
  return dims;
}
/// x as the kernels want it under `l`: of compute dtype, dense.
Tensor for_layout(const Tensor& x, const Layout& l, DType t) {
  if (l.direct && x.dtype() == t) return x;
  return contiguous(x.dtype() == t ? x : cast(x, t));
}
/// The gradient with the strides of x.
Tensor as_laid_out(const Tensor& g, const Tensor& x) {
  if (Ints(g.strides()) == Ints(x.strides())) return g;
  Tensor same = allocate({x.sizes(), g.dtype(), x.device(), x.strides()});
  return in_place(copy, same, g);
}

void check_batch_norm(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& running_mean,
                      const Tensor& running_var, bool training) {
  check_floating(x, "batch_norm");
  check(x.dim() >= 1, "expected an input with a channel dimension, got a 0-dim tensor");
  const int64_t channels = channels_of(x);
  const std::pair<const Tensor*, const char*> all[] = {
      {&running_mean, "running_mean"}, {&running_var, "running_var"}, {&w, "weight"}, {&b, "bias"}};
  for (const auto& [t, name] : all)
    check(!t->defined() || t->numel() == channels, name, " should contain ", channels, " elements not ",
          t->defined() ? t->numel() : 0);
  check(training || running_mean.defined(), "running_mean must be defined in evaluation mode");
  check(training || running_var.defined(), "running_var must be defined in evaluation mode");
  check(x.dim() >= 2 || x.numel() == 0, "expected an input of at least 2 dimensions, got ", x.dim());
}

void batch_norm_kernel(Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& x, const Tensor& w, const Tensor& b,
                       const Tensor& running_mean, const Tensor& running_var, bool training, double momentum,
                       double eps) {
  if (training && x.numel() == 0) {  // no statistics: the running ones stay, and the gradients are sums of nothing
    cpu::fill(mean, Scalar(0));
    return cpu::fill(rstd, Scalar(0));
  }
  const DType t = statistics_dtype(x);
  Layout l = layout_of(x);
  if (x.dtype() != t) l.last = l.size == 1, l.direct = false;
  const Tensor in = for_layout(x, l, t);
  const int64_t channels = l.channels;
  const auto per_channel = [&](DType dtype) { return allocate({{channels}, dtype, x.device(), {}}); };
  Tensor scale = per_channel(t), shift = per_channel(t), average, variance;
  const Tensor weight = plain(w, t), bias = plain(b, t);
  const bool fit = training && !l.last && cpu::channels_fit(in, l.batch, channels, l.size);
  if (training) {
    variance = per_channel(kFloat64);
    average = per_channel(kFloat64);
    if (!fit) cpu::var_mean(variance, average, in, all_but_channels(x.dim()), 0, false);
    for (const Tensor* running : {&running_mean, &running_var})
      if (running->defined()) running->bump_version();
  }
  using cuda::array_of;
  const auto stride = [](const Tensor& s) { return s.defined() && s.dim() ? s.strides()[0] : 1; };
  const cuda::BatchStatistics statistics{
      array_of(mean),       array_of(rstd),         array_of(scale),       array_of(shift),   array_of(weight),
      array_of(bias),       array_of(running_mean), array_of(running_var), array_of(average), array_of(variance),
      stride(running_mean), stride(running_var),    l.batch * l.size,      momentum,          eps};
  Tensor to = out;
  if (out.dtype() != t || Ints(out.strides()) != Ints(in.strides()))
    to = allocate({x.sizes(), t, x.device(), in.strides()});
  if (fit) {
    cpu::channel_normalize(to, variance, average, in, l.batch, channels, l.size, scale, shift, statistics);
  } else {
    cuda::on_each(x.device(), channels, statistics);
    cpu::channel_affine(to, in, l.batch, channels, l.size, l.last, scale, shift);
  }
  finish_result(out, to);
}

void batch_norm_backward_kernel(Tensor& dx, Tensor& dw, Tensor& db, const Tensor& g, const Tensor& x, const Tensor& w,
                                const Tensor& mean, const Tensor& rstd, bool training) {
  const DType t = statistics_dtype(x);
  Layout l = layout_of(x);
  if (x.dtype() != t) l.last = l.size == 1, l.direct = false;
  const Tensor in = for_layout(x, l, t), grad = as_laid_out(g.dtype() == t ? g : cast(g, t), in);
  const int64_t channels = l.channels;
  const auto per_channel = [&](DType dtype) { return allocate({{channels}, dtype, x.device(), {}}); };
  Tensor sum = per_channel(kFloat64), dot = per_channel(kFloat64);
  const Tensor weight = plain(w, t);
  Tensor a = per_channel(t), b = per_channel(t), k = per_channel(t);
  using cuda::array_of;
  const cuda::BatchGradients gradients{array_of(dw),  array_of(db),   array_of(a),      array_of(b),
                                       array_of(k),   array_of(mean), array_of(rstd),   array_of(weight),
                                       array_of(sum), array_of(dot),  l.batch * l.size, training};
  Tensor to = dx;
  if (dx.dtype() != t || Ints(dx.strides()) != Ints(in.strides()))
    to = allocate({x.sizes(), t, x.device(), in.strides()});
  if (!l.last && cpu::channels_fit(in, l.batch, channels, l.size)) {
    cpu::channel_normalize_backward(to, sum, dot, grad, in, l.batch, channels, l.size, mean, a, b, k, gradients);
  } else {
    cpu::channel_sums(sum, dot, grad, in, l.batch, channels, l.size, l.last, mean);
    cuda::on_each(x.device(), channels, gradients);
    cpu::channel_combine(to, grad, in, l.batch, channels, l.size, l.last, a, b, k);
  }
  finish_result(dx, to);
}

std::array<Tensor, 3> three(const Tensor& a, const Tensor& b, const Tensor& c) { return {a, b, c}; }
/// PyTorch's native operators give statistics of the parameters' dtype, or the input's.
Tensor native_statistics(const Tensor& s, const Tensor& x, const Tensor& w) {
  return cast(s, w.defined() ? w.dtype() : x.dtype());
}

Tensor instance_norm_of(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& w,
                        const Tensor& b, bool use_input_stats, double momentum, double eps) {
  check(x.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", x.dim());
  check(use_input_stats || (running_mean.defined() && running_var.defined()),
        "Expected running_mean and running_var to be defined when use_input_stats is false");
  const int64_t n = x.sizes()[0], channels = x.sizes()[1];
  for (const Tensor* p : {&running_mean, &running_var, &w, &b})
    check(!p->defined() || p->numel() == channels,
          p == &w              ? "weight"
          : p == &b            ? "bias"
          : p == &running_mean ? "running_mean"
                               : "running_var",
          " should contain ", channels, " elements not ", p->defined() ? p->numel() : 0);
  const auto repeated = [&](const Tensor& p) {
    return p.defined() ? reshape(expand(reshape(p, {1, channels}), {n, channels}), {n * channels}) : p;
  };
  Dims flat{1, n * channels};
  for (int64_t d = 2; d < x.dim(); ++d) flat.push_back(x.sizes()[d]);
  const auto own = [&](const Tensor& p) { return p.defined() ? clone(repeated(p)) : p; };
  const Tensor m = own(running_mean), v = own(running_var);
  const Tensor y = batch_norm(reshape(x, flat), m, v, repeated(w), repeated(b), use_input_stats, momentum, eps);
  if (use_input_stats) {
    NoGrad guard;
    for (const auto& [running, fresh] : {std::pair{running_mean, m}, std::pair{running_var, v}}) {
      Tensor target = running;
      if (target.defined()) in_place(copy, target, mean(reshape(fresh, {n, channels}), Ints({0})));
    }
  }
  return reshape(y, x.sizes());
}

}  // namespace

OP_DEFINE(layer_norm){{
    .doc = R"(Normalizes over the trailing dimensions ``normalized_shape`` and applies a learned scale and shift.

.. math:: y = (x - E[x]) / \sqrt{Var[x] + eps} * weight + bias      (biased variance)

Shape: input (*, S), weight and bias (S) or None; the result is (*, S), where S is ``normalized_shape``.
Dtype: floating; float16 and bfloat16 are accumulated in float32.
Errors: RuntimeError where the trailing dimensions of input are not S.
Source: Ba, Kiros and Hinton 2016, arXiv:1607.06450, eq. 3 and 4.)",
    .composite = [](const Tensor& x, Ints shape, const Tensor& w, const Tensor& b, double eps,
                    bool) { return layer_norm_of(x, shape, w, b, eps)[0]; },
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "LayerNormalization(input, weight, bias, axis=-len(normalized_shape), epsilon=eps)",
}};

OP_DEFINE(layer_norm_of){{
    .doc = R"(layer_norm with the mean and one over the standard deviation of each row, both of shape (*, 1...).)",
    .infer =
        [](const Tensor& x, Ints shape, const Tensor& w, const Tensor& b, double) {
          check_floating(x, "LayerNormKernelImpl");
          trailing(x, shape, false);
          check_parameter(w, shape, "weight");
          check_parameter(b, shape, "bias");
          const Meta statistics{statistics_shape(x, shape), statistics_dtype(x)};
          return std::array<Meta, 3>{Meta{x.sizes(), x.dtype()}, statistics, statistics};
        },
    .kernel = {[](Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& x, Ints shape, const Tensor& w,
                  const Tensor& b, double eps) {
      const DType t = statistics_dtype(x);
      Tensor y = result_memory(out, t);
      cpu::layer_norm(y, mean, rstd, plain(x, t), product(shape), plain(w, t), plain(b, t), eps, false);
      finish_result(out, y);
    }},
    .saves = "input, weight, mean, rstd",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& x, Ints shape, const Tensor& w, const Tensor&,
           double eps) {
          if (!g[0].defined()) return Grads{};
          if (grad_enabled()) return normalized_backward(g[0], x, trailing(x, shape, false), w, eps, false);
          const auto [dx, dw, db] = layer_norm_backward(g[0], x, product(shape), results[1], results[2], w,
                                                        needs_grad(0), needs_grad(1) || needs_grad(2));
          if (!needs_grad(1) && !needs_grad(2)) return Grads{dx, Tensor(), Tensor()};
          return Grads{dx, reshape(dw, shape), reshape(db, shape)};
        },
}};

OP_DEFINE(layer_norm_backward){{
    .doc = R"(The gradients of layer_norm, and of rms_norm where ``mean`` is None, from its statistics.)",
    .infer =
        [](const Tensor& g, const Tensor& x, int64_t n, const Tensor& mean, const Tensor& rstd, const Tensor& w,
           bool need_input, bool need_weights) {
          check_floating(x, "layer_norm_backward");
          check(n >= 0 && (n ? x.numel() % n == 0 : x.numel() == 0), "rows of ", n, " elements do not make up ",
                x.sizes());
          const int64_t rows = n ? x.numel() / n : rstd.numel();
          check_backward(g, x, {{&mean, rows}, {&rstd, rows}}, w, n);
          const Meta parameter{{need_weights ? n : 0}, statistics_dtype(x)};
          return std::array<Meta, 3>{Meta{need_input ? x.sizes() : Dims{0}, x.dtype()}, parameter, parameter};
        },
    .kernel = {[](Tensor& dx, Tensor& dw, Tensor& db, const Tensor& g, const Tensor& x, int64_t n, const Tensor& mean,
                  const Tensor& rstd, const Tensor& w, bool need_input, bool need_weights) {
      const DType t = statistics_dtype(x);
      Tensor to = need_input ? result_memory(dx, t) : Tensor(), none;
      cpu::layer_norm_backward(to, need_weights ? dw : none, need_weights ? db : none, plain(g, t), plain(x, t), n,
                               mean, rstd, plain(w, t));
      if (need_input) finish_result(dx, to);
    }},
}};

OP_DEFINE(rms_norm){{
    .doc = R"(Divides by the root of the mean square over the trailing dimensions ``normalized_shape``.

``x / sqrt(mean(x^2) + eps) * weight``; without ``eps`` the machine epsilon of the dtype computed in.
Shape: input (*, S), weight (S) or None; the result is (*, S). Source: Zhang and Sennrich 2019, arXiv:1910.07467.)",
    .composite =
        [](const Tensor& x, Ints shape, const Tensor& w, std::optional<double> eps) {
          const Dims dims = trailing(x, shape, true);
          check_parameter(w, shape, "weight");
          const DType real = real_of(x.dtype());
          const double e = eps.value_or(real == kFloat64 ? std::numeric_limits<double>::epsilon()
                                                         : double(std::numeric_limits<float>::epsilon()));
          if (x.is_complex()) return times(x / sqrt(mean(x * x, OptInts(dims), true) + e), w);
          return rms_norm_of(x, shape, w, e)[0];
        },
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(rms_norm_of){{
    .doc = R"(rms_norm with one over the root of the mean square of each row, of shape (*, 1...).)",
    .infer =
        [](const Tensor& x, Ints shape, const Tensor& w, double) {
          check_floating(x, "rms_norm");
          trailing(x, shape, true);
          check_parameter(w, shape, "weight");
          return std::array<Meta, 2>{Meta{x.sizes(), x.dtype()}, Meta{statistics_shape(x, shape), statistics_dtype(x)}};
        },
    .kernel = {[](Tensor& out, Tensor& rstd, const Tensor& x, Ints shape, const Tensor& w, double eps) {
      const DType t = statistics_dtype(x);
      Tensor y = result_memory(out, t), none;
      cpu::layer_norm(y, none, rstd, plain(x, t), product(shape), plain(w, t), none, eps, true);
      finish_result(out, y);
    }},
    .saves = "input, weight, rstd",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& x, Ints shape, const Tensor& w, double eps) {
          if (!g[0].defined()) return Grads{};
          if (grad_enabled()) {
            const Grads all = normalized_backward(g[0], x, trailing(x, shape, true), w, eps, true);
            return Grads{all[0], all[1]};
          }
          const auto [dx, dw, db] =
              layer_norm_backward(g[0], x, product(shape), Tensor(), results[1], w, needs_grad(0), needs_grad(1));
          return Grads{dx, needs_grad(1) ? reshape(dw, shape) : Tensor()};
        },
}};

OP_DEFINE(group_norm){{
    .doc = R"(Normalizes each of ``num_groups`` groups of channels of each sample, then scales and shifts by channel.

Shape: input (N, C, *) with C divisible by ``num_groups``, weight and bias (C) or None; the result is (N, C, *).
Source: Wu and He 2018, arXiv:1803.08494.)",
    .composite = [](const Tensor& x, int64_t groups, const Tensor& w, const Tensor& b, double eps,
                    bool) { return group_norm_of(x, groups, w, b, eps)[0]; },
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(group_norm_of){{
    .doc = R"(group_norm with the mean and one over the standard deviation of each group, both of shape (N, groups).)",
    .infer =
        [](const Tensor& x, int64_t groups, const Tensor& w, const Tensor& b, double) {
          check_floating(x, "GroupNormKernelImpl");
          check_group_norm(x, groups, w, b);
          check(x.numel() > 0 || x.sizes()[0] == 0 || x.sizes()[1] == 0, "Expected HxW to be greater than 0, got 0");
          const Meta statistics{{x.sizes()[0], groups}, statistics_dtype(x)};
          return std::array<Meta, 3>{Meta{x.sizes(), x.dtype()}, statistics, statistics};
        },
    .kernel = {[](Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& x, int64_t groups, const Tensor& w,
                  const Tensor& b, double eps) {
      const DType t = statistics_dtype(x);
      const int64_t batch = x.sizes()[0], channels = x.sizes()[1];
      if (x.numel() == 0) return;
      Tensor y = result_memory(out, t);
      cpu::group_norm(y, mean, rstd, plain(x, t), batch * groups, channels / groups, x.numel() / (batch * channels),
                      channels, plain(w, t), plain(b, t), eps);
      finish_result(out, y);
    }},
    .saves = "input, weight, mean, rstd",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& x, int64_t groups, const Tensor& w, const Tensor&,
           double eps) {
          if (!g[0].defined()) return Grads{};
          const int64_t batch = x.sizes()[0], channels = x.sizes()[1];
          if (x.numel() == 0) {
            const auto none = [&](size_t i) {
              return needs_grad(i) ? zeros({channels}, statistics_dtype(x), {}, x.device()) : Tensor();
            };
            return Grads{zeros_like(x), none(1), none(2)};
          }
          // Rows of a group: what is in one is normalized together; the weight is per channel.
          const Dims split{batch, groups, channels / groups, x.numel() / (batch * channels)};
          const int64_t n = split[2] * split[3];
          const Tensor xs = reshape(x, split), gs = reshape(g[0], split);
          const Tensor ws = w.defined() ? reshape(w, {1, groups, channels / groups, 1}) : w;
          if (grad_enabled()) {
            const Grads all = normalized_backward(gs, xs, Dims{2, 3}, ws, eps, false);
            const auto by_channel = [&](const Tensor& t) { return reshape(sum(t, Ints({0, 3})), {channels}); };
            return Grads{reshape(all[0], x.sizes()), by_channel(all[1]), by_channel(all[2])};
          }
          Tensor dx, dw, db;
          if (needs_grad(0)) {
            const Tensor h = w.defined() ? gs * cast(ws, gs.dtype()) : gs;
            dx = reshape(layer_norm_backward(h, xs, n, results[1], results[2], Tensor(), true, false)[0], x.sizes());
          }
          if (!needs_grad(1) && !needs_grad(2)) return Grads{dx, dw, db};
          const Tensor by_sample = sum(gs, Ints({3}), false, statistics_dtype(x));
          if (needs_grad(1)) {
            const Tensor dot = sum(cast(gs, statistics_dtype(x)) * xs, Ints({3}));
            const Tensor m = reshape(results[1], {batch, groups, 1}), r = reshape(results[2], {batch, groups, 1});
            dw = reshape(sum((dot - by_sample * m) * r, Ints({0})), {channels});
          }
          if (needs_grad(2)) db = reshape(sum(by_sample, Ints({0})), {channels});
          return Grads{dx, dw, db};
        },
}};

OP_DEFINE(batch_norm){
    {
        .doc = R"(Normalizes each channel over the batch and all positions, then scales and shifts it.

In training the statistics are those of the input, and running_mean and running_var (where given) move towards them:
``running = (1 - momentum) * running + momentum * statistic``, with the unbiased variance. Otherwise they are used.
Shape: input (N, C, *), the others (C) or None; the result is (N, C, *).
Source: Ioffe and Szegedy 2015, arXiv:1502.03167.)",
        .composite =
            [](const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& w, const Tensor& b,
               bool training, double momentum,
               double eps) { return batch_norm_of(x, w, b, running_mean, running_var, training, momentum, eps)[0]; },
        .onnx = "BatchNormalization(input, weight, bias, running_mean, running_var, epsilon=eps)",
    },
    {
        .doc = R"(The same with torch.batch_norm's order of arguments.)",
        .composite = [](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& running_mean,
                        const Tensor& running_var, bool training, double momentum, double eps,
                        bool) { return batch_norm_of(x, w, b, running_mean, running_var, training, momentum, eps)[0]; },
    }};

OP_DEFINE(batch_norm_of){{
    .doc = R"(batch_norm with the mean and one over the standard deviation that it used, both of shape (C).)",
    .infer =
        [](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& running_mean, const Tensor& running_var,
           bool training, double, double) {
          check_batch_norm(x, w, b, running_mean, running_var, training);
          const Meta statistics{{channels_of(x)}, statistics_dtype(x)};
          return std::array<Meta, 3>{like(x), statistics, statistics};
        },
    .kernel = {batch_norm_kernel},
    .saves = "input, weight, mean, rstd",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& x, const Tensor& w, const Tensor&, const Tensor&,
           const Tensor&, bool training, double, double eps) {
          if (!g[0].defined()) return Grads{};
          if (!grad_enabled()) {
            const auto [dx, dw, db] = batch_norm_backward(g[0], x, w, results[1], results[2], training);
            return Grads{dx, dw, db};
          }
          const Dims dims = all_but_channels(x.dim());
          const Tensor ws = channelwise(w, x.dim());
          Grads all;
          if (training) {
            all = normalized_backward(g[0], x, dims, ws, eps, false);
          } else {
            const Tensor m = channelwise(results[1], x.dim()), r = channelwise(results[2], x.dim());
            all = Grads{times(g[0], ws) * r, g[0] * ((x - m) * r), g[0]};
          }
          return Grads{all[0], sum(all[1], OptInts(dims)), sum(all[2], OptInts(dims))};
        },
}};

OP_DEFINE(batch_norm_backward){{
    .doc = R"(The gradients of batch_norm from the statistics that it used.)",
    .infer =
        [](const Tensor& g, const Tensor& x, const Tensor& w, const Tensor& mean, const Tensor& rstd, bool) {
          check_floating(x, "batch_norm_backward");
          check(x.dim() >= 1, "expected an input with a channel dimension, got a 0-dim tensor");
          check_backward(g, x, {{&mean, channels_of(x)}, {&rstd, channels_of(x)}}, w, channels_of(x));
          const Meta parameter{{channels_of(x)}, statistics_dtype(x)};
          return std::array<Meta, 3>{like(x), parameter, parameter};
        },
    .kernel = {batch_norm_backward_kernel},
}};

OP_DEFINE(instance_norm){
    {
        .doc = R"(batch_norm of each sample by itself; running statistics move towards the mean over samples.

Shape: input (N, C, *), the others (C) or None; the result is (N, C, *). Source: Ulyanov et al. 2016, arXiv:1607.08022.)",
        .composite = instance_norm_of,
    },
    {
        .doc = R"(The same with torch.instance_norm's order of arguments.)",
        .composite =
            [](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& running_mean, const Tensor& running_var,
               bool use_input_stats, double momentum, double eps,
               bool) { return instance_norm_of(x, running_mean, running_var, w, b, use_input_stats, momentum, eps); },
    }};

OP_DEFINE(native_layer_norm){{
    .doc = R"(layer_norm, the mean, and one over the standard deviation.)",
    .composite =
        [](const Tensor& x, Ints shape, const Tensor& w, const Tensor& b, double eps) {
          const auto [y, m, r] = layer_norm_of(x, shape, w, b, eps);
          return three(y, native_statistics(m, x, w), native_statistics(r, x, w));
        },
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(native_group_norm){{
    .doc = R"(group_norm of an input of N * C * HxW elements, the mean, and one over the standard deviation.)",
    .composite =
        [](const Tensor& x, const Tensor& w, const Tensor& b, int64_t n, int64_t channels, int64_t size, int64_t group,
           double eps) {
          check(x.numel() == count_elements({n, channels, size}), "input of shape ", x.sizes(),
                " does not have N * C * HxW = ", n, " * ", channels, " * ", size, " elements");
          auto [y, m, r] = group_norm_of(reshape(x, {n, channels, size}), group, w, b, eps);
          if (grad_enabled() && x.requires_grad() && x.numel() > 0) {  // group_norm_of's gradient is that of y alone
            const Tensor groups = cast(reshape(x, {n, group, -1}), m.dtype());
            m = mean(groups, Ints({2}));
            r = rsqrt(var(groups, Ints({2}), Scalar(0)) + eps);
          }
          return three(reshape(y, x.sizes()), native_statistics(m, x, w), native_statistics(r, x, w));
        },
}};

OP_DEFINE(native_batch_norm){{
    .doc = R"(batch_norm, and in training the mean and one over the standard deviation of the batch (else empty).)",
    .composite =
        [](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& running_mean, const Tensor& running_var,
           bool training, double momentum, double eps) {
          const auto [y, m, r] = batch_norm_of(x, w, b, running_mean, running_var, training, momentum, eps);
          if (training) return three(y, native_statistics(m, x, w), native_statistics(r, x, w));
          const Tensor none = native_statistics(zeros({0}), x, w);
          return three(y, none, none);
        },
}};

OP_DEFINE(cosine_similarity){{
    .doc = R"(The cosine of the angle between x1 and x2, which broadcast, taken as vectors along ``dim``.

``sum(x1 * x2) / (max(norm(x1), eps) * max(norm(x2), eps))``. Floating dtypes.)",
    .composite =
        [](const Tensor& a, const Tensor& b, int64_t dim, double eps) {
          const DType t = promote_tensors(a, b);
          check(is_floating(t), "expected common dtype to be floating point, yet common dtype is ", scalar_name(t));
          const Dims sizes = broadcast(a.sizes(), b.sizes());
          const Tensor x = expand(cast(a, t), sizes), y = expand(cast(b, t), sizes);
          const auto size = [&](const Tensor& v) {
            return maximum(linalg_vector_norm(v, 2, Ints({dim})), Tensor(eps));
          };
          return sum(x * y, Ints({dim})) / (size(x) * size(y));
        },
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(pairwise_distance){{
    .doc = R"(The norm of order ``p`` of x1 - x2 + eps along the last dimension.)",
    .composite = [](const Tensor& a, const Tensor& b, double p, double eps,
                    bool keepdim) { return linalg_vector_norm(a - b + eps, p, Ints({-1}), keepdim); },
}};

}  // namespace rush
