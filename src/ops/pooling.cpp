// Pooling. The public operators check and work out sizes; a few general ones over the last one to three dimensions
// compute. Those come in pairs, each the other's gradient: scatter and gather, avg_pool and avg_pool_backward.
#include "kernels/cpu/pooling.h"

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"
#include "tensor/sizes.h"

namespace rush {

namespace {

constexpr std::string_view kNumbers[] = {"zero", "one", "two", "three"};

/// n numbers from an argument that may be a single one.
Dims spread(Ints values, size_t n, std::string_view name, std::string_view op) {
  check_int32(name, values);
  if (values.size() == 1) return Dims(n, values[0]);
  check(values.size() == n, op, ": ", name, " must either be a single int, or a tuple of ", kNumbers[n], " ints");
  return values;
}

struct Windows {
  Dims kernel, stride, padding, dilation, output;
};

Dims with_last(const Tensor& x, Ints last) {
  Dims sizes = x.sizes();
  std::copy(last.begin(), last.end(), sizes.end() - last.size());
  return sizes;
}

Ints last_sizes(const Tensor& x, size_t n) {
  check(size_t(x.dim()) >= n, "expected a tensor of at least ", n, " dimensions, got ", x.sizes());
  return Ints(x.sizes()).slice(size_t(x.dim()) - n, n);
}

/// The number of windows along one dimension; one that starts in the right padding is not counted.
int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t count = (room >= 0 ? room / stride : -((-room + stride - 1) / stride)) + 1;
  if (ceil_mode && (count - 1) * stride >= size + padding) --count;
  return count;
}

void check_nonempty(const Tensor& x, size_t n, std::string_view op) {
  check(x.dim() == int64_t(n) + 1 || x.dim() == int64_t(n) + 2, op, ": Expected ", n + 1, "D or ", n + 2,
        "D (batch mode) tensor with optional 0 dim batch size for input, but got:", x.sizes());
  for (int64_t d = x.dim() == int64_t(n) + 2 ? 1 : 0; d < x.dim(); ++d)
    check(x.sizes()[d] > 0, op, ": Expected ", n + 1, "D or ", n + 2,
          "D (batch mode) tensor with optional 0 dim batch size for input, but got:", x.sizes());
}

Windows windows(const Tensor& x, size_t n, std::string_view op, Ints kernel, OptInts stride, Ints padding,
                Ints dilation, bool ceil_mode) {
  Windows w;
  w.kernel = spread(kernel, n, "kernel_size", op);
  w.stride = !stride || stride->empty() ? w.kernel : spread(*stride, n, "stride", op);
  w.padding = spread(padding, n, "padding", op);
  w.dilation = spread(dilation, n, "dilation", op);
  check_nonempty(x, n, op);
  for (size_t d = 0; d < n; ++d) {
    check(w.stride[d] != 0, "stride should not be zero");
    check(w.kernel[d] > 0, "kernel size should be greater than zero, but got kernel_size ", w.kernel);
    check(w.stride[d] > 0, "stride should be greater than zero, but got stride ", w.stride);
    check(w.dilation[d] > 0, "dilation should be greater than zero, but got dilation ", w.dilation);
    check(w.padding[d] >= 0, "pad must be non-negative, but got pad: ", w.padding[d]);
    check(w.padding[d] <= ((w.kernel[d] - 1) * w.dilation[d] + 1) / 2,
          "pad should be at most half of effective kernel size, but got pad=", w.padding[d],
          ", kernel_size=", w.kernel[d], " and dilation=", w.dilation[d]);
    w.output.push_back(
        window_count(last_sizes(x, n)[d], w.kernel[d], w.stride[d], w.padding[d], w.dilation[d], ceil_mode));
  }
  for (int64_t o : w.output)
    check(o > 0, "Given input size: ", x.sizes(), ". Calculated output size: ", w.output, ". Output size is too small");
  return w;
}

/// What the operators that compute rely on, whoever calls them: as many numbers as dimensions, and windows that reach
/// into the input. No kernel sizes stand for adaptive windows.
void check_windows(const Tensor& x, Ints input, Ints output, Ints kernel, Ints stride, Ints padding, Ints dilation) {
  const size_t n = output.size();
  check(n >= 1 && n <= 3 && size_t(x.dim()) >= n && input.size() == n, "expected one to three sizes for a tensor of ",
        x.dim(), " dimensions, got ", input, " and ", output);
  for (size_t d = 0; d < n; ++d)
    check(input[d] >= 0 && output[d] >= 0 && (input[d] > 0 || output[d] == 0), "no windows of ", input, " give ",
          output);
  if (kernel.empty()) return;
  for (Ints numbers : {kernel, stride, padding, dilation}) {
    check(numbers.size() == n, "expected ", n, " numbers for each dimension, got ", numbers);
    check_int32("kernel_size, stride, padding or dilation", numbers);
  }
  for (size_t d = 0; d < n; ++d)
    check(kernel[d] > 0 && stride[d] > 0 && dilation[d] > 0 && padding[d] >= 0 &&
              padding[d] <= (kernel[d] - 1) * dilation[d] &&
              (output[d] == 0 ||
               window_count(input[d], kernel[d], stride[d], padding[d], dilation[d], true) >= output[d]),
          "no windows of kernel ", kernel, ", stride ", stride, ", padding ", padding, " and dilation ", dilation,
          " give ", output, " for ", input);
}

/// The sizes of the planes that `indices` lie in are the last ones; those before are the same for both.
void check_planes(const Tensor& x, const Tensor& indices, size_t spatial) {
  check(indices.dtype() == kInt64, "indices must be int64, not ", scalar_name(indices.dtype()));
  check(spatial <= 3 && size_t(x.dim()) >= spatial && x.dim() == indices.dim() &&
            Ints(x.sizes()).slice(0, size_t(x.dim()) - spatial) ==
                Ints(indices.sizes()).slice(0, size_t(x.dim()) - spatial),
        "indices of shape ", indices.sizes(), " do not lie in the last ", spatial, " dimensions of ", x.sizes());
}

cpu::Pooling describe(const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding, Ints dilation) {
  const size_t n = output.size();
  const auto numbers = [](Ints v, int64_t fill) {
    return cpu::extent(std::span<const int64_t>(v.begin(), v.size()), fill);
  };
  return {cpu::planes_of(x, n), cpu::spatial_extent(x, n), numbers(output, 1),   numbers(kernel, 1),
          numbers(stride, 1),   numbers(padding, 0),       numbers(dilation, 1), kernel.empty()};
}

Tensor max_of_windows(const Tensor& x, const Windows& w, std::string_view op) {
  check<NotImplementedError>(x.dtype() != kBool && !x.is_complex(), "\"", op, "\" not implemented for '",
                             scalar_name(x.dtype()), "'");
  if (grad_enabled() && x.requires_grad()) return max_pool(x, w.output, w.kernel, w.stride, w.padding, w.dilation)[0];
  return max_pool_values(x, w.output, w.kernel, w.stride, w.padding, w.dilation);
}

std::array<Tensor, 2> max_with_indices(const Tensor& x, const Windows& w, std::string_view op) {
  check<NotImplementedError>(x.dtype() != kBool && !x.is_complex(), "\"", op, "\" not implemented for '",
                             scalar_name(x.dtype()), "'");
  return max_pool(x, w.output, w.kernel, w.stride, w.padding, w.dilation);
}

/// The checked output size of an adaptive pooling.
Dims adaptive_size(const Tensor& x, Ints output_size, size_t n, std::string_view op) {
  const Dims size = output_size.size() == 1 ? Dims(n, output_size[0]) : Dims(output_size);
  check(size.size() == n, op, ": output_size must be ", n);
  check<ValueError>(n == 1 || x.dim() > int64_t(n), "Input dimension should be at least ", n + 1, ", got shape ",
                    x.sizes());
  check(x.dim() == int64_t(n) + 1 || x.dim() == int64_t(n) + 2, op, "(): Expected ", n + 1, "D or ", n + 2,
        "D tensor, but got: ", x.sizes());
  for (int64_t d = 1; d < x.dim(); ++d)
    check(x.sizes()[d] > 0, op,
          "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", x.sizes(),
          " with dimension ", d, " being empty");
  for (int64_t s : size)
    check(s >= 0, op, ": elements of output_size must be greater than or equal to 0 but received ", size);
  check<NotImplementedError>(x.is_floating_point(), "\"", op, "\" not implemented for '", scalar_name(x.dtype()), "'");
  return size;
}

Tensor mean_of_windows(const Tensor& x, const Windows& w, bool count_include_pad, OptInt divisor) {
  check(!divisor || *divisor != 0, "divisor must be not zero");
  if (x.dtype() == kInt64)  // rounds towards zero
    return cast(
        avg_pool(cast(x, kFloat64), w.output, w.kernel, w.stride, w.padding, count_include_pad, divisor.value_or(0)),
        kInt64);
  check<NotImplementedError>(x.is_floating_point(), "\"avg_pool\" not implemented for '", scalar_name(x.dtype()), "'");
  return avg_pool(x, w.output, w.kernel, w.stride, w.padding, count_include_pad, divisor.value_or(0));
}

void check_indices(const Tensor& x, const Tensor& indices) {
  check(indices.dtype() == kInt64, "elements in indices should be type int64 but got: ", scalar_name(indices.dtype()));
  check(Ints(x.sizes()) == Ints(indices.sizes()), "Expected shape of indices to be same as that of the input tensor (",
        x.sizes(), ") but got indices tensor with shape: ", indices.sizes());
}

constexpr const char* kMaxPoolDoc = R"(The largest element of each window over the last dimensions.

Shape: input (n, c, spatial...) or (c, spatial...); each spatial size becomes the number of windows that fit,
``floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1``, with ceil instead of floor for ``ceil_mode``.
``stride`` is ``kernel_size`` unless given. Padding never wins. Dtype: real, not bool.
Errors: RuntimeError where sizes do not fit.)";
constexpr const char* kMaxPoolIndicesDoc =
    R"(Like the max_pool of the same name, and where in its plane each maximum was.

Results: the maxima and their int64 positions in the flattened spatial dimensions of the input.)";
constexpr const char* kAvgPoolDoc = R"(The mean of each window over the last dimensions.

Shape: as for max_pool. ``count_include_pad`` counts padding as zeros; ``divisor_override`` divides by itself instead.
Dtype: floating or int64. Errors: RuntimeError where sizes do not fit.)";
constexpr const char* kAdaptiveMaxDoc =
    R"(The largest element of each of ``output_size`` windows that cover the input evenly.

Results: the maxima and their int64 positions in the flattened spatial dimensions of the input. Dtype: floating.
Errors: RuntimeError for an empty input or a negative size.)";
constexpr const char* kAdaptiveAvgDoc = R"(The mean of each of ``output_size`` windows that cover the input evenly.

Shape: input (n, c, spatial...) or (c, spatial...); the spatial sizes become ``output_size``. Dtype: floating.
Errors: RuntimeError for an empty input or a negative size.)";

}  // namespace

#define RUSH_MAX_POOL(name, with_indices, n)                                                                           \
  OP_DEFINE(name){{.doc = kMaxPoolDoc,                                                                                 \
                   .composite =                                                                                        \
                       [](const Tensor& x, Ints kernel, OptInts stride, Ints padding, Ints dilation, bool ceil_mode) { \
                         return max_of_windows(x, windows(x, n, #name, kernel, stride, padding, dilation, ceil_mode),  \
                                               #name);                                                                 \
                       },                                                                                              \
                   .onnx = "MaxPool(input, kernel_shape=kernel_size, strides=stride, pads=padding+padding)"}};         \
  OP_DEFINE(with_indices){                                                                                             \
      {.doc = kMaxPoolIndicesDoc,                                                                                      \
       .composite = [](const Tensor& x, Ints kernel, OptInts stride, Ints padding, Ints dilation, bool ceil_mode) {    \
         return max_with_indices(x, windows(x, n, #name, kernel, stride, padding, dilation, ceil_mode), #name);        \
       }}};
RUSH_MAX_POOL(max_pool1d, max_pool1d_with_indices, 1)
RUSH_MAX_POOL(max_pool2d, max_pool2d_with_indices, 2)
RUSH_MAX_POOL(max_pool3d, max_pool3d_with_indices, 3)

#define RUSH_ADAPTIVE_POOL(max_name, avg_name, n)                                                   \
  OP_DEFINE(max_name){{.doc = kAdaptiveMaxDoc, .composite = [](const Tensor& x, Ints output_size) { \
                         const Dims size = adaptive_size(x, output_size, n, #max_name);             \
                         return max_pool(x, size, Ints(), Ints(), Ints(), Ints());                  \
                       }}};                                                                         \
  OP_DEFINE(avg_name){{.doc = kAdaptiveAvgDoc, .composite = [](const Tensor& x, Ints output_size) { \
                         const Dims size = adaptive_size(x, output_size, n, #avg_name);             \
                         return avg_pool(x, size, Ints(), Ints(), Ints(), true, 0);                 \
                       }}};
RUSH_ADAPTIVE_POOL(adaptive_max_pool1d, adaptive_avg_pool1d, 1)
RUSH_ADAPTIVE_POOL(adaptive_max_pool2d, adaptive_avg_pool2d, 2)
RUSH_ADAPTIVE_POOL(adaptive_max_pool3d, adaptive_avg_pool3d, 3)

OP_DEFINE(avg_pool1d){{
    .doc = kAvgPoolDoc,
    .composite =
        [](const Tensor& x, Ints kernel, OptInts stride, Ints padding, bool ceil_mode, bool count_include_pad) {
          return mean_of_windows(x, windows(x, 1, "avg_pool1d", kernel, stride, padding, Ints({1}), ceil_mode),
                                 count_include_pad, {});
        },
}};

OP_DEFINE(avg_pool2d){{
    .doc = kAvgPoolDoc,
    .composite =
        [](const Tensor& x, Ints kernel, OptInts stride, Ints padding, bool ceil_mode, bool count_include_pad,
           OptInt divisor) {
          return mean_of_windows(x, windows(x, 2, "avg_pool2d", kernel, stride, padding, Ints({1}), ceil_mode),
                                 count_include_pad, divisor);
        },
}};

OP_DEFINE(avg_pool3d){{
    .doc = kAvgPoolDoc,
    .composite =
        [](const Tensor& x, Ints kernel, OptInts stride, Ints padding, bool ceil_mode, bool count_include_pad,
           OptInt divisor) {
          return mean_of_windows(x, windows(x, 3, "avg_pool3d", kernel, stride, padding, Ints({1}), ceil_mode),
                                 count_include_pad, divisor);
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(max_unpool2d){{
    .doc = R"(Puts each element at the place that max_pool2d's indices name, in zeros of ``output_size``.

Errors: RuntimeError where the shapes differ, an index is out of range or indices are not int64.)",
    .composite =
        [](const Tensor& x, const Tensor& indices, Ints output_size) {
          check_indices(x, indices);
          check(output_size.size() == 2,
                "There should be exactly two elements (height, width) in output_size, but got ", output_size.size(),
                " elements.");
          check(x.dim() == 3 || x.dim() == 4,
                "Input to max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with ", x.dim(),
                " dimensions.");
          return max_unpool(x, indices, output_size);
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(max_unpool3d){{
    .doc = R"(Puts each element at the place that max_pool3d's indices name, in zeros of ``output_size``.

Errors: RuntimeError where the shapes differ, an index is out of range, indices are not int64 or a stride is not positive.)",
    .composite =
        [](const Tensor& x, const Tensor& indices, Ints output_size, Ints stride, Ints padding) {
          check_indices(x, indices);
          check(output_size.size() == 3,
                "There should be exactly three elements (depth, height, width) in output_size, but got ",
                output_size.size(), " elements.");
          check(stride.size() == 3,
                "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
                " elements.");
          check(padding.size() == 3,
                "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
                " elements.");
          for (int64_t s : stride) check(s > 0, "strides should be greater than zero, but got stride: ", stride);
          check(x.dim() == 4 || x.dim() == 5,
                "Input to max_unpooling3d should be a 4d or 5d Tensor, but got a tensor with ", x.dim(),
                " dimensions.");
          return max_unpool(x, indices, output_size);
        },
    .autocast = on_cpu(Autocast::fp32),
}};

namespace {

void check_fractional(const Tensor& x, const Tensor& samples, Ints kernel, Ints output, size_t n, std::string_view op) {
  check(n >= 1 && n <= 3 && kernel.size() == n && output.size() == n, op,
        ": expected one to three sizes of windows and of the output, got ", kernel, " and ", output);
  check_nonempty(x, n, op);
  check(samples.dim() == 3 && samples.size(2) == int64_t(n), op,
        ": expected random_samples of shape (batch, channels, ", n, "), got ", samples.sizes());
  check(samples.dtype() == x.dtype(), "Expect _random_samples to have the same dtype as input");
  for (size_t d = 0; d < n; ++d) {
    check(output[d] > 0 && kernel[d] > 0, op, ": sizes must be greater than zero, got kernel ", kernel, " and output ",
          output);
    check(output[d] + kernel[d] - 1 <= last_sizes(x, n)[d], op, "(): pool size ", kernel[d],
          " too large relative to input size ", last_sizes(x, n)[d]);
  }
  check(samples.size(0) * samples.size(1) >= product(Ints(x.sizes()).slice(0, size_t(x.dim()) - n)), op,
        ": random_samples ", samples.sizes(), " are too few for input ", x.sizes());
}

std::array<Tensor, 2> fractional(const Tensor& x, Ints kernel_size, Ints output_size, const Tensor& samples, size_t n) {
  const std::string op = "fractional_max_pool" + std::to_string(n) + "d";
  const Dims kernel = spread(kernel_size, n, "kernel_size", op), output = spread(output_size, n, "output_size", op);
  check_fractional(x, samples, kernel, output, n, op);
  return fractional_max_pool(x, samples, kernel, output);
}

}  // namespace

OP_DEFINE(fractional_max_pool2d){{
    .doc = R"(The largest element of each of ``output_size`` windows of ``kernel_size`` at pseudo-random places.

Results: the maxima and their positions in the plane. random_samples (n, c, 2) in [0, 1) decide where the windows are.
Source: Graham 2014, arXiv:1412.6071.)",
    .composite = [](const Tensor& x, Ints kernel_size, Ints output_size,
                    const Tensor& samples) { return fractional(x, kernel_size, output_size, samples, 2); },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(fractional_max_pool3d){{
    .doc = R"(The three-dimensional fractional_max_pool2d; random_samples (n, c, 3).)",
    .composite = [](const Tensor& x, Ints kernel_size, Ints output_size,
                    const Tensor& samples) { return fractional(x, kernel_size, output_size, samples, 3); },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(max_pool){{
    .doc =
        R"(Maxima and their positions for any number of spatial dimensions; an empty kernel_size means adaptive windows.)",
    .infer =
        [](const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding, Ints dilation) {
          check_windows(x, last_sizes(x, output.size()), output, kernel, stride, padding, dilation);
          const Dims sizes = with_last(x, output);
          return std::array{Meta{sizes, x.dtype()}, Meta{sizes, kInt64}};
        },
    .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding,
                  Ints dilation) {
      if (values.numel()) cpu::max_pool(values, &indices, describe(x, output, kernel, stride, padding, dilation), x);
    }},
    .saves = "indices, input.shape",
    .vjp = [](const Tensors& g, const Tensors& results, const Tensor& x, Ints output, Ints, Ints, Ints,
              Ints) { return Grads{pool_scatter(g[0], results[1], last_sizes(x, output.size()))}; },
}};

OP_DEFINE(max_pool_values){{
    .doc = R"(The maxima of _max_pool without positions; has no gradient.)",
    .infer =
        [](const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding, Ints dilation) {
          check_windows(x, last_sizes(x, output.size()), output, kernel, stride, padding, dilation);
          return Meta{with_last(x, output), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding, Ints dilation) {
      if (out.numel()) cpu::max_pool(out, nullptr, describe(x, output, kernel, stride, padding, dilation), x);
    }},
}};

OP_DEFINE(fractional_max_pool){{
    .doc = R"(fractional_max_pool2d and 3d after their checks.)",
    .infer =
        [](const Tensor& x, const Tensor& samples, Ints kernel, Ints output) {
          check_fractional(x, samples, kernel, output, output.size(), "fractional_max_pool");
          const Dims sizes = with_last(x, output);
          return std::array{Meta{sizes, x.dtype()}, Meta{sizes, kInt64}};
        },
    .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, const Tensor& samples, Ints kernel, Ints output) {
      const Dims ones(output.size(), 1), none(output.size(), 0);
      if (values.numel())
        cpu::fractional_max_pool(values, indices, describe(x, output, kernel, ones, none, ones), x, samples);
    }},
    .saves = "indices, input.shape",
    .vjp = [](const Tensors& g, const Tensors& results, const Tensor& x, const Tensor&, Ints,
              Ints output) { return Grads{pool_scatter(g[0], results[1], last_sizes(x, output.size()))}; },
}};

OP_DEFINE(max_unpool){{
    .doc = R"(Writes elements to their indices within each plane of zeros of ``output_size``.)",
    .infer =
        [](const Tensor& x, const Tensor& indices, Ints output) {
          check_indices(x, indices);
          check_planes(x, indices, output.size());
          return Meta{with_last(x, output), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& indices, Ints output) {
      cpu::max_unpool(out, x, indices, output.size());
    }},
    .saves = "indices",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& indices,
              Ints output) { return Grads{pool_gather(g, indices, int64_t(output.size()))}; },
}};

OP_DEFINE(pool_scatter){{
    .doc = R"(Adds elements up at their indices within each plane of zeros of ``output_size``.)",
    .infer =
        [](const Tensor& x, const Tensor& indices, Ints output) {
          check_indices(x, indices);
          check_planes(x, indices, output.size());
          return Meta{with_last(x, output), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& indices, Ints output) {
      cpu::pool_scatter(out, x, indices, output.size());
    }},
    .saves = "indices",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& indices,
              Ints output) { return Grads{pool_gather(g, indices, int64_t(output.size()))}; },
}};

OP_DEFINE(pool_gather){{
    .doc = R"(The elements at ``indices`` within each plane, the last ``spatial`` dimensions.)",
    .infer =
        [](const Tensor& x, const Tensor& indices, int64_t spatial) {
          check_planes(x, indices, size_t(spatial));
          return Meta{indices.sizes(), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& indices, int64_t spatial) {
      cpu::pool_gather(out, x, indices, size_t(spatial));
    }},
    .saves = "indices, input.shape",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& indices,
              int64_t spatial) { return Grads{pool_scatter(g, indices, last_sizes(x, size_t(spatial)))}; },
}};

OP_DEFINE(avg_pool){{
    .doc = R"(Means for any number of spatial dimensions; an empty kernel_size means adaptive windows.)",
    .infer =
        [](const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding, bool, int64_t) {
          check_windows(x, last_sizes(x, output.size()), output, kernel, stride, padding, Dims(kernel.size(), 1));
          return Meta{with_last(x, output), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding, bool include,
                  int64_t divisor) {
      if (out.numel())
        cpu::avg_pool(out, describe(x, output, kernel, stride, padding, Dims(kernel.size(), 1)), include, divisor, x);
    }},
    .saves = "input.shape",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, Ints output, Ints kernel, Ints stride, Ints padding,
           bool include, int64_t divisor) {
          return Grads{avg_pool_backward(g, last_sizes(x, output.size()), kernel, stride, padding, include, divisor)};
        },
}};

OP_DEFINE(avg_pool_backward){{
    .doc = R"(The gradient of _avg_pool: spreads each element over its window.)",
    .infer =
        [](const Tensor& g, Ints input, Ints kernel, Ints stride, Ints padding, bool, int64_t) {
          check_windows(g, input, last_sizes(g, input.size()), kernel, stride, padding, Dims(kernel.size(), 1));
          return Meta{with_last(g, input), g.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& g, Ints input, Ints kernel, Ints stride, Ints padding, bool include,
                  int64_t divisor) {
      if (g.numel() == 0) return cpu::fill(out, Scalar(0));
      const cpu::Pooling pool =
          describe(out, last_sizes(g, input.size()), kernel, stride, padding, Dims(kernel.size(), 1));
      cpu::avg_pool_backward(out, pool, include, divisor, g);
    }},
    .saves = "grad.shape",
    .vjp =
        [](const Tensor& gg, const Tensor&, const Tensor& g, Ints input, Ints kernel, Ints stride, Ints padding,
           bool include, int64_t divisor) {
          return Grads{avg_pool(gg, last_sizes(g, input.size()), kernel, stride, padding, include, divisor)};
        },
}};

}  // namespace rush
