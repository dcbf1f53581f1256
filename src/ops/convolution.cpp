// Convolutions. All are `convolution`, whose gradients are convolutions again: for the input the one that goes the
// other way (transposed or not), for the weight an operator of its own, whose gradients are the two again.
#include "kernels/cpu/convolution.h"

#include <cmath>
#include <ostream>
#include <vector>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"
#include "ops/inference.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

/// n numbers from an argument that may be a single one.
Dims spread(Ints values, size_t n, std::string_view name) {
  if (values.size() == 1) return Dims(n, values[0]);
  check(values.size() == n, "expected ", name, " to be a single integer value or a list of ", n,
        " values to match the convolution dimensions, but got ", name, "=", values);
  return values;
}

cpu::Extent spatial(const Tensor& x) {
  return cpu::extent(std::span<const int64_t>(x.sizes().begin() + 2, size_t(x.dim()) - 2), 1);
}
cpu::Extent numbers(Ints values, int64_t fill) {
  return cpu::extent(std::span<const int64_t>(values.begin(), values.size()), fill);
}

/// The convolution from `in` to `out`, whichever of them is being computed.
cpu::Convolution describe(const Tensor& in, const Tensor& out, Ints kernel, Ints stride, Ints padding, Ints dilation,
                          int64_t groups) {
  return {in.sizes()[0],       out.numel() || in.numel() ? in.sizes()[1] : 0,
          out.sizes()[1],      groups,
          spatial(in),         spatial(out),
          numbers(kernel, 1),  numbers(stride, 1),
          numbers(padding, 0), numbers(dilation, 1)};
}

Ints kernel_of(const Tensor& weight) { return Ints(weight.sizes()).slice(2, size_t(weight.dim()) - 2); }

/// Sizes written (2 x 3), as messages do; made only where a message is.
struct ByDimension {
  Ints sizes;
};
std::ostream& operator<<(std::ostream& out, const ByDimension& text) {
  const char* between = "(";
  for (int64_t s : text.sizes) {
    out << between << s;
    between = " x ";
  }
  return out << ")";
}
ByDimension by_dimension(Ints sizes) { return {sizes}; }

bool any_below(Ints values, int64_t limit) {
  return std::any_of(values.begin(), values.end(), [limit](int64_t v) { return v < limit; });
}

Dims output_sizes(const Tensor& x, const Tensor& w, Ints stride, Ints padding, Ints dilation, bool transposed,
                  Ints output_padding, int64_t groups) {
  Dims sizes{x.sizes()[0], transposed ? w.sizes()[1] * groups : w.sizes()[0]};
  for (size_t d = 0; d < stride.size(); ++d) {
    const int64_t n = x.sizes()[d + 2], reach = dilation[d] * (w.sizes()[d + 2] - 1);
    sizes.push_back(transposed ? (n - 1) * stride[d] - 2 * padding[d] + reach + output_padding[d] + 1
                               : (n + 2 * padding[d] - reach - 1) / stride[d] + 1);
  }
  return sizes;
}

void check_convolution(const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, Ints padding, Ints dilation,
                       bool transposed, int64_t groups) {
  check(!any_below(padding, 0), "negative padding is not supported");
  check(!any_below(stride, 1), "non-positive stride is not supported");
  check(!any_below(dilation, 1), "dilation should be greater than zero, but got ", dilation);
  check(groups > 0, "non-positive groups is not supported");
  check(x.dim() == w.dim(), "Expected ", w.dim(), "-dimensional input for ", w.dim(), "-dimensional weight ", w.sizes(),
        ", but got ", x.dim(), "-dimensional input of size ", x.sizes(), " instead");
  check(w.sizes()[0] >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
        " at dimension 0, but got weight of size ", w.sizes(), " instead");
  check(w.sizes()[0] % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
        " at dimension 0, but got weight of size [", w.sizes(), "] instead");
  const int64_t expected = transposed ? w.sizes()[0] : w.sizes()[1] * groups;
  check(x.sizes()[1] == expected, "Given ", transposed ? "transposed=" : "groups=", transposed ? 1 : groups,
        ", weight of size ", w.sizes(), ", expected input", x.sizes(), " to have ", expected, " channels, but got ",
        x.sizes()[1], " channels instead");
  const int64_t out = transposed ? w.sizes()[1] * groups : w.sizes()[0];
  check(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == out), "Given ", transposed ? "transposed=1, " : "",
        "weight of size ", w.sizes(), ", expected bias to be 1-dimensional with ", out,
        " elements, but got bias of size ", bias.defined() ? bias.sizes() : Dims(), " instead");
  check(x.dtype() == w.dtype(), "expected scalar type ", scalar_name(x.dtype()), " but found ", scalar_name(w.dtype()));
  check(!bias.defined() || bias.dtype() == x.dtype(), "Input type (", name_of(x.dtype()), ") and bias type (",
        name_of(bias.defined() ? bias.dtype() : kBool), ") should be the same");
  check<NotImplementedError>(x.dtype() != kBool, "\"slow_conv_cpu\" not implemented for 'Bool'");
  Dims padded, kernel;
  bool fits = true;
  for (size_t d = 0; d < stride.size(); ++d) {
    padded.push_back(x.sizes()[d + 2] + 2 * padding[d]);
    kernel.push_back(dilation[d] * (w.sizes()[d + 2] - 1) + 1);
    fits &= transposed || padded[d] >= kernel[d];
  }
  check(fits, "Calculated padded input size per channel: ", by_dimension(padded),
        ". Kernel size: ", by_dimension(kernel), ". Kernel size can't be greater than actual input size");
  check(!any_below(kernel, 1), "Kernel size should be positive, but got weight of size ", w.sizes());
  check(x.numel() > 0 || x.sizes()[0] == 0 || x.sizes()[1] == 0,
        "Only zero batch or zero channel inputs are supported, but got input shape: ", x.sizes());
}

constexpr auto convolution_meta = [](const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, Ints padding,
                                     Ints dilation, bool transposed, Ints output_padding, int64_t groups) {
  check(w.dim() >= 3 && w.dim() <= 5, "weight should have at least three dimensions and at most five, got ", w.sizes());
  const size_t n = size_t(w.dim()) - 2;
  check(stride.size() == n && padding.size() == n && dilation.size() == n && output_padding.size() == n, "expected ", n,
        " numbers each for stride, padding, dilation and output_padding");
  for (const Ints& numbers : {stride, padding, dilation, output_padding})
    check_int32("among stride, padding, dilation and output_padding", numbers);
  check_int32("groups", groups);
  check_convolution(x, w, bias, stride, padding, dilation, transposed, groups);
  const Dims sizes = output_sizes(x, w, stride, padding, dilation, transposed, output_padding, groups);
  const Ints space = Ints(sizes).slice(2, n);
  check(!any_below(space, transposed ? 1 : 0),
        "Given input size per channel: ", by_dimension(Ints(x.sizes()).slice(2, n)),
        ". Calculated output size per channel: ", by_dimension(space), ". Output size is too small");
  return Meta{sizes, x.dtype()};
};

/// The gradient of conv's (or transposed conv's) input: a convolution the other way with this input's sizes.
Tensor other_way(const Tensor& g, const Tensor& w, Ints input_sizes, Ints stride, Ints padding, Ints dilation,
                 bool transposed, int64_t groups) {
  Dims output_padding(stride.size(), 0);
  for (size_t d = 0; d < stride.size() && !transposed; ++d)
    output_padding[d] = input_sizes[d + 2] - ((g.sizes()[d + 2] - 1) * stride[d] - 2 * padding[d] +
                                              dilation[d] * (w.sizes()[d + 2] - 1) + 1);
  Tensor result = convolution(g, w, Tensor(), stride, padding, dilation, !transposed, output_padding, groups);
  for (size_t d = 0; d < stride.size() && transposed; ++d)  // an output padding of a stride or more adds windows
    if (result.sizes()[d + 2] != input_sizes[d + 2]) result = narrow(result, int64_t(d) + 2, 0, input_sizes[d + 2]);
  return result;
}

Dims without_channels(const Tensor& g) {
  Dims dims{0};
  for (int64_t d = 2; d < g.dim(); ++d) dims.push_back(d);
  return dims;
}

/// Calls f with a batch, made of one where the input has none, and undoes that.
template <class F>
Tensor batched(const Tensor& x, size_t n, std::string_view name, F&& f) {
  check(x.dim() == int64_t(n) + 1 || x.dim() == int64_t(n) + 2, "Expected ", n + 1, "D (unbatched) or ", n + 2,
        "D (batched) input to ", name, ", but got input of size: ", x.sizes());
  return x.dim() == int64_t(n) + 2 ? f(x) : squeeze(f(unsqueeze(x, 0)), 0);
}

void check_weight(const Tensor& w, size_t n, Ints stride) {
  check(w.dim() == int64_t(n) + 2, "expected stride to be a single integer value or a list of ",
        std::max<int64_t>(w.dim() - 2, 0), " values to match the convolution dimensions, but got stride=", stride);
}

Tensor conv(const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, Ints padding, Ints dilation,
            int64_t groups, size_t n, std::string_view name) {
  return batched(x, n, name, [&](const Tensor& batch) {
    const Dims s = spread(stride, n, "stride"), p = spread(padding, n, "padding"), d = spread(dilation, n, "dilation");
    check_weight(w, n, s);
    return convolution(batch, w, bias, s, p, d, false, Dims(n, 0), groups);
  });
}

Tensor conv_named_padding(const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, std::string_view padding,
                          Ints dilation, int64_t groups, size_t n, std::string_view name) {
  check(padding == "same" || padding == "valid", "Invalid padding string: '", padding, "'");
  const Dims s = spread(stride, n, "stride"), d = spread(dilation, n, "dilation");
  check_int32("dilation", d);
  check_weight(w, n, s);
  Dims pads(n, 0), extra(n, 0);
  if (padding == "same") {
    for (size_t i = 0; i < n; ++i) {
      check(s[i] == 1, "padding='same' is not supported for strided convolutions");
      const int64_t total = d[i] * (w.sizes()[i + 2] - 1);
      pads[i] = (total + 1) / 2;
      extra[i] = total % 2;  // the left side has one less: the first result is one too many
    }
  }
  Tensor y = conv(x, w, bias, s, pads, d, groups, n, name);
  for (size_t i = 0; i < n; ++i) {
    const int64_t dim = y.dim() - int64_t(n) + int64_t(i);
    if (extra[i]) y = narrow(y, dim, 1, y.size(dim) - 1);
  }
  return y;
}

Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, Ints padding,
                      Ints output_padding, int64_t groups, Ints dilation, size_t n, std::string_view name) {
  return batched(x, n, name, [&](const Tensor& batch) {
    const Dims s = spread(stride, n, "stride"), p = spread(padding, n, "padding"), d = spread(dilation, n, "dilation"),
               o = spread(output_padding, n, "output_padding");
    check_weight(w, n, s);
    check(!any_below(o, 0), "negative output_padding is not supported");
    for (size_t i = 0; i < n; ++i)
      check(o[i] < s[i] || o[i] < d[i],
            "output padding must be smaller than either stride or dilation, but got "
            "output_padding ",
            o, ", stride ", s, ", dilation ", d);
    return convolution(batch, w, bias, s, p, d, true, o, groups);
  });
}

}  // namespace

OP_DEFINE(convolution){{
    .doc = R"(The general convolution behind conv1d to conv_transpose3d, over one to three spatial dimensions.

Shape: input (n, c, spatial...), weight (out, c / groups, kernel...), transposed (c, out / groups, kernel...), bias (out).
Dtype: any but bool, the same for all. Errors: RuntimeError where shapes, dtypes or numbers do not fit.)",
    .infer = convolution_meta,
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, Ints padding,
                  Ints dilation, bool transposed, Ints, int64_t groups) {
      if (out.numel() == 0) return;
      if (transposed)
        cpu::convolution_transposed(out, describe(out, x, kernel_of(w), stride, padding, dilation, groups), x, w, bias);
      else
        cpu::convolution(out, describe(x, out, kernel_of(w), stride, padding, dilation, groups), x, w, bias);
    }},
    .saves = "input if weight, weight if input, input.shape, weight.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& w, const Tensor&, Ints stride, Ints padding,
           Ints dilation, bool transposed, Ints, int64_t groups) {
          Grads grads(3);
          if (needs_grad(0)) grads[0] = other_way(g, conj(w), x.sizes(), stride, padding, dilation, transposed, groups);
          if (needs_grad(1)) {
            const Tensor &from = transposed ? g : conj(x), &to = transposed ? conj(x) : g;
            grads[1] = convolution_weight_grad(from, to, kernel_of(w), stride, padding, dilation, groups);
          }
          if (needs_grad(2)) grads[2] = sum(g, without_channels(g));
          return grads;
        },
    .autocast = Autocast::half,
    .onnx = "Conv(input, weight, bias, strides=stride, pads=padding+padding, dilations=dilation, group=groups)",
}};

Tensor fused_convolution(const Tensor& x, const FusedConvolution& f) {
  const size_t n = f.stride.size();
  const Meta meta = convolution_meta(x, f.weight, f.bias, f.stride, f.padding, f.dilation, false, Dims(n, 0), f.groups);
  check<NotImplementedError>(x.dtype() == kFloat32 && x.device().is_cpu(),
                             "fused_convolution: only for float32 on the CPU, but got ", name_of(x.dtype()), " on ",
                             x.device());
  check(
      f.mean.defined() == f.var.defined() && (f.mean.defined() || !(f.norm_weight.defined() || f.norm_bias.defined())),
      "fused_convolution: a norm needs both mean and var");
  const int64_t channels = f.weight.sizes()[0];
  for (const Tensor* t : {&f.weight, &f.bias, &f.mean, &f.var, &f.norm_weight, &f.norm_bias})
    check(!t->defined() || t->device().is_cpu(), "fused_convolution: expected all tensors on the CPU");
  for (const Tensor* t : {&f.mean, &f.var, &f.norm_weight, &f.norm_bias})
    check(!t->defined() || (t->dtype() == kFloat32 && t->dim() == 1 && t->sizes()[0] == channels),
          "fused_convolution: expected float32 tensors of ", channels, " elements for the norm, but got one of size ",
          t->defined() ? t->sizes() : Dims());

  static constexpr float kZero = 0, kOne = 1;
  struct Channels {
    const float* data;
    int64_t step;
    Channels(const Tensor& t, const float& otherwise)
        : data(t.defined() ? t.data<float>() : &otherwise), step(t.defined() ? t.strides()[0] : 0) {}
    float operator[](int64_t c) const { return data[c * step]; }
  };
  const Channels bias(f.bias, kZero), mean(f.mean, kZero), var(f.var, kOne), norm_weight(f.norm_weight, kOne),
      norm_bias(f.norm_bias, kZero);
  const float eps = f.mean.defined() ? float(f.eps) : 0;
  std::vector<float> scale(static_cast<size_t>(channels)), shift(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) {
    const float s = norm_weight[c] / std::sqrt(var[c] + eps);
    scale[size_t(c)] = s;
    shift[size_t(c)] = norm_bias[c] + (bias[c] - mean[c]) * s;
  }
  Tensor out = empty(meta.sizes, meta.dtype);
  if (out.numel() > 0)
    cpu::convolution(out, describe(x, out, kernel_of(f.weight), f.stride, f.padding, f.dilation, f.groups), x, f.weight,
                     cpu::Epilogue<float>{shift.data(), scale.data(), float(f.low), float(f.high)});
  return out;
}

OP_DEFINE(convolution_weight_grad){{
    .doc = R"(The gradient of a convolution's weight from its input and its output's gradient.

Shape: input (n, c, spatial...), grad (n, out, spatial...); the result is (out, c / groups, kernel_size...).)",
    .infer =
        [](const Tensor& x, const Tensor& g, Ints kernel, Ints stride, Ints padding, Ints dilation, int64_t groups) {
          const size_t n = kernel.size();
          check(n >= 1 && n <= 3 && size_t(x.dim()) == n + 2 && g.dim() == x.dim() && stride.size() == n &&
                    padding.size() == n && dilation.size() == n && x.dtype() == g.dtype() && x.size(0) == g.size(0) &&
                    groups > 0 && x.size(1) % groups == 0 && g.size(1) % groups == 0,
                "no convolution of ", x.sizes(), " has a result of ", g.sizes(), " with kernel ", kernel, ", stride ",
                stride, ", padding ", padding, ", dilation ", dilation, " and groups ", groups);
          for (size_t d = 0; d < n; ++d) {
            for (int64_t v : {kernel[d], stride[d], padding[d], dilation[d]})
              check(v >= 0 && v <= std::numeric_limits<int32_t>::max(), "a size of ", v, " is out of range");
            const int64_t in = x.sizes()[d + 2], room = in + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
            check(stride[d] > 0 && kernel[d] > 0 && dilation[d] > 0, "sizes must be positive");
            check(g.numel() == 0 || g.sizes()[d + 2] <= (room < 0 ? 0 : room / stride[d] + 1), "a convolution of ",
                  x.sizes(), " has no result of ", g.sizes());
          }
          Dims sizes{g.sizes()[1], x.sizes()[1] / groups};
          for (int64_t k : kernel) sizes.push_back(k);
          return Meta{sizes, x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& g, Ints kernel, Ints stride, Ints padding, Ints dilation,
                  int64_t groups) {
      if (out.numel() == 0) return;
      if (x.numel() == 0 || g.numel() == 0) return cpu::fill(out, Scalar(0));
      cpu::convolution_weight_grad(out, describe(x, g, kernel, stride, padding, dilation, groups), x, g);
    }},
    .saves = "input if grad, grad if input, input.shape",
    .vjp =
        [](const Tensor& gg, const Tensor&, const Tensor& x, const Tensor& g, Ints, Ints stride, Ints padding,
           Ints dilation, int64_t groups) {
          return Grads{
              needs_grad(0) ? other_way(conj(g), gg, x.sizes(), stride, padding, dilation, false, groups) : Tensor(),
              needs_grad(1)
                  ? convolution(conj(x), gg, Tensor(), stride, padding, dilation, false, Dims(stride.size(), 0), groups)
                  : Tensor()};
        },
}};

#define RUSH_CONV(name, n)                                                                                             \
  OP_DEFINE(name){                                                                                                     \
      {.doc = kConvDoc,                                                                                                \
       .composite = [](const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, Ints padding, Ints dilation, \
                       int64_t groups) { return conv(x, w, bias, stride, padding, dilation, groups, n, #name); }},     \
      {.doc = kConvDoc,                                                                                                \
       .composite = [](const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, std::string_view padding,    \
                       Ints dilation, int64_t groups) {                                                                \
         return conv_named_padding(x, w, bias, stride, padding, dilation, groups, n, #name);                           \
       }}};
#define RUSH_CONV_TRANSPOSE(name, n)                                                                                 \
  OP_DEFINE(name){{.doc = kConvTransposeDoc,                                                                         \
                   .composite = [](const Tensor& x, const Tensor& w, const Tensor& bias, Ints stride, Ints padding,  \
                                   Ints output_padding, int64_t groups, Ints dilation) {                             \
                     return conv_transpose(x, w, bias, stride, padding, output_padding, groups, dilation, n, #name); \
                   }}};

namespace {
constexpr const char* kConvDoc =
    R"(Convolves the input's channels with ``weight`` (a cross-correlation, as in all of deep learning).

Shape: input (n, c, spatial...) or (c, spatial...), weight (out, c / groups, kernel...), bias (out) or None; each spatial
size becomes ``floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1``. ``padding`` may be "valid" (none)
or "same" (the result has the input's size; only with stride 1). Dtype: any but bool, the same for all.
Errors: RuntimeError where shapes, dtypes or numbers do not fit.)";
constexpr const char* kConvTransposeDoc =
    R"(The transpose of a convolution: the operator that gives its input's gradient, also called deconvolution.

Shape: input (n, c, spatial...) or (c, spatial...), weight (c, out / groups, kernel...), bias (out) or None; each spatial
size becomes ``(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.
Errors: RuntimeError where shapes, dtypes or numbers do not fit.)";
}  // namespace

RUSH_CONV(conv1d, 1)
RUSH_CONV(conv2d, 2)
RUSH_CONV(conv3d, 3)
RUSH_CONV_TRANSPOSE(conv_transpose1d, 1)
RUSH_CONV_TRANSPOSE(conv_transpose2d, 2)
RUSH_CONV_TRANSPOSE(conv_transpose3d, 3)

OP_DEFINE(conv_tbc){{
    .doc = R"(A convolution over time with the layout (time, batch, channels).

Shape: input (t, n, c), weight (kernel, c, out), bias (out); the result is (t + 2 * pad - kernel + 1, n, out).)",
    .composite =
        [](const Tensor& x, const Tensor& w, const Tensor& bias, int64_t pad) {
          check(x.dim() == 3, "Input must have 3 dims: time, batch, in_channel");
          check(w.dim() == 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
          check(bias.dim() == 1, "Bias must be 1-D");
          return permute(conv1d(permute(x, {1, 2, 0}), permute(w, {2, 1, 0}), bias, Ints({1}), Ints({pad})), {2, 0, 1});
        },
    .autocast = Autocast::half,
}};

}  // namespace rush
