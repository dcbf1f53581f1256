// Images: resizing, and sampling at places that a grid names. Resizing is linear; its two operators are each other's
// gradient.
#include "kernels/cpu/resample.h"

#include <cmath>

#include "kernels/cpu/pointwise.h"
#include "ops/common.h"

namespace rush {

namespace {

Dims with_spatial(const Tensor& x, Ints spatial) {
  check(x.dim() >= 2, "expected a tensor with batch and channels, got shape ", x.sizes());
  Dims sizes{x.sizes()[0], x.sizes()[1]};
  for (int64_t s : spatial) sizes.push_back(s);
  return sizes;
}

Ints spatial_of(const Tensor& x) {
  check(x.dim() >= 2, "expected a tensor with batch and channels, got shape ", x.sizes());
  return Ints(x.sizes()).slice(2, size_t(x.dim()) - 2);
}

/// What resampling relies on, whoever calls it.
void check_resample(const Tensor& x, Ints sizes, std::span<const double> scales) {
  check(x.dim() >= 3 && x.dim() <= 5, "expected 3-D to 5-D input, got shape ", x.sizes());
  const size_t n = size_t(x.dim()) - 2;
  check(sizes.size() == n && (scales.empty() || scales.size() == n), "It is expected ", n,
        " sizes for an input of shape ", x.sizes(), ", got ", sizes);
  for (size_t d = 0; d < n; ++d)
    check(sizes[d] > 0 && x.sizes()[d + 2] > 0, "Input and output sizes should be greater than 0, but got input ",
          spatial_of(x), " and output ", sizes);
}

cpu::GridSampling sampling(int64_t mode, int64_t padding, bool align) {
  check(mode >= 0 && mode <= 2, "grid_sampler(): unknown interpolation_mode ", mode);
  check(padding >= 0 && padding <= 2, "grid_sampler(): unknown padding_mode ", padding);
  return {cpu::Interpolation(mode), cpu::Padding(padding), align};
}

void check_grid(const Tensor& x, const Tensor& grid, int64_t mode) {
  check(x.dim() == grid.dim() && (x.dim() == 4 || x.dim() == 5),
        "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes ",
        x.sizes(), " and grid with sizes ", grid.sizes());
  check(x.dtype() == grid.dtype(), "grid_sampler(): expected input and grid to have same dtype, but input has ",
        name_of(x.dtype()), " and grid has ", name_of(grid.dtype()));
  check(x.size(0) == grid.size(0),
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes ", x.sizes(),
        " and grid with sizes ", grid.sizes());
  check(grid.size(-1) == x.dim() - 2, "grid_sampler(): expected grid to have size ", x.dim() - 2,
        " in last dimension, but got grid with sizes ", grid.sizes());
  for (int64_t s : spatial_of(x))
    check(s > 0, "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes ",
          x.sizes());
  check(mode != 2 || x.dim() == 4, "grid_sampler(): bicubic interpolation only supports 4D input");
  check<NotImplementedError>(x.is_floating_point(), "\"grid_sampler\" not implemented for '", scalar_name(x.dtype()),
                             "'");
}

}  // namespace

OP_DEFINE(upsample){{
    .doc =
        R"(Resizes the dimensions after the first two, to ``output_size`` or by ``scale_factors``; one of them is given.

``mode``: "nearest", "nearest-exact", "linear", "bilinear", "trilinear" or "bicubic". ``align_corners`` keeps the corner
elements in place instead of the corners' edges; ``antialias`` widens the filter when shrinking.
Errors: RuntimeError for sizes that are not positive; NotImplementedError for dtypes that cannot be resized.)",
    .composite =
        [](const Tensor& x, OptInts output_size, std::optional<std::span<const double>> factors, std::string_view mode,
           bool align_corners, bool antialias) {
          check(bool(output_size) != bool(factors), "Must specify exactly one of output_size and scale_factors");
          check(x.dim() >= 3 && x.dim() <= 5, "expected 3-D to 5-D input, got shape ", x.sizes());
          const size_t n = size_t(x.dim()) - 2;
          check((output_size ? output_size->size() : factors->size()) == n, "It is expected ", n,
                " sizes for an input of shape ", x.sizes());
          Dims sizes;
          for (size_t d = 0; d < n; ++d)
            sizes.push_back(output_size ? (*output_size)[d]
                                        : int64_t(std::floor(double(x.sizes()[d + 2]) * (*factors)[d])));
          for (size_t d = 0; d < n; ++d)
            check(sizes[d] > 0 && x.sizes()[d + 2] > 0,
                  "Input and output sizes should be greater than 0, but got input ", spatial_of(x), " and output ",
                  sizes);
          check(x.size(1) > 0, "Non-empty ", x.dim(), "D data tensor expected but got a tensor with sizes ", x.sizes());
          check<NotImplementedError>(x.is_floating_point() || x.dtype() == kUInt8, "\"upsample\" not implemented for '",
                                     scalar_name(x.dtype()), "'");
          return resample(x, sizes, factors.value_or(std::span<const double>()), mode, align_corners, antialias);
        },
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "Resize(input, output_size, mode=mode)",
}};

OP_DEFINE(resample){{
    .doc = R"(upsample after its checks; empty scale_factors mean the quotients of the sizes.)",
    .infer =
        [](const Tensor& x, Ints sizes, std::span<const double> scales, std::string_view, bool, bool) {
          check_resample(x, sizes, scales);
          return Meta{with_spatial(x, sizes), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, Ints, std::span<const double> scales, std::string_view mode, bool align,
                  bool antialias) {
      if (out.numel()) cpu::resample(out, x, {mode, align, antialias, scales});
    }},
    .saves = "input.shape",
    .vjp = [](const Tensor& g, const Tensor&, const Tensor& x, Ints, std::span<const double> scales,
              std::string_view mode, bool align,
              bool antialias) { return Grads{resample_backward(g, spatial_of(x), scales, mode, align, antialias)}; },
}};

OP_DEFINE(resample_backward){{
    .doc = R"(The transpose of _resample: its gradient.)",
    .infer =
        [](const Tensor& g, Ints sizes, std::span<const double> scales, std::string_view, bool, bool) {
          check_resample(g, sizes, scales);
          return Meta{with_spatial(g, sizes), g.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& g, Ints, std::span<const double> scales, std::string_view mode, bool align,
                  bool antialias) {
      if (out.numel()) cpu::resample_backward(out, g, {mode, align, antialias, scales});
    }},
    .saves = "grad.shape",
    .vjp = [](const Tensor& gg, const Tensor&, const Tensor& g, Ints, std::span<const double> scales,
              std::string_view mode, bool align,
              bool antialias) { return Grads{resample(gg, spatial_of(g), scales, mode, align, antialias)}; },
}};

OP_DEFINE(grid_sample){{
    .doc = R"(Samples an image at the places that ``grid`` names, from -1 (left, top, front) to 1.

Shape: input (n, c, h, w) and grid (n, a, b, 2), the result is (n, c, a, b); or input (n, c, d, h, w) and grid
(n, a, b, e, 3). ``mode``: "bilinear", "nearest", "bicubic" (4-D only). ``padding_mode``: "zeros", "border", "reflection".
``align_corners``: whether -1 and 1 are the corner elements' centers or their edges (the default).
Errors: RuntimeError where shapes or dtypes do not fit; ValueError for unknown modes.)",
    .composite =
        [](const Tensor& x, const Tensor& grid, std::string_view mode, std::string_view padding, OptBool align) {
          const int64_t m = mode == "bilinear" ? 0 : mode == "nearest" ? 1 : mode == "bicubic" ? 2 : -1;
          const int64_t p = padding == "zeros" ? 0 : padding == "border" ? 1 : padding == "reflection" ? 2 : -1;
          check<ValueError>(m >= 0,
                            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
                            "but got: '",
                            mode, "'");
          check<ValueError>(p >= 0,
                            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
                            "'reflection', but got: '",
                            padding, "'");
          return grid_sampler(x, grid, m, p, align.value_or(false));
        },
    .autocast = on_cpu(Autocast::fp32),
}};

OP_DEFINE(grid_sampler){{
    .doc = R"(grid_sample with numbers for the modes, in the order that its documentation names them.)",
    .infer =
        [](const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding, bool align) {
          check_grid(x, grid, mode);
          sampling(mode, padding, align);
          return Meta{with_spatial(x, Ints(grid.sizes()).slice(1, size_t(grid.dim()) - 2)), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding, bool align) {
      if (out.numel()) cpu::grid_sample(out, x, grid, sampling(mode, padding, align));
    }},
    .saves = "input, grid",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding,
           bool align) {
          const auto [gx, gg] = grid_sampler_backward(g, x, grid, mode, padding, align);
          return Grads{gx, gg};
        },
    .autocast = on_cuda(Autocast::widest),
}};

OP_DEFINE(grid_sampler_2d){{
    .doc = R"(grid_sampler for images.)",
    .composite = [](const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align) { return grid_sampler(x, grid, mode, padding, align); },
}};

OP_DEFINE(grid_sampler_3d){{
    .doc = R"(grid_sampler for volumes.)",
    .composite = [](const Tensor& x, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align) { return grid_sampler(x, grid, mode, padding, align); },
}};

OP_DEFINE(grid_sampler_backward){{
    .doc = R"(The gradients of grid_sampler's input and grid. Has no gradient itself.)",
    .infer =
        [](const Tensor& g, const Tensor& x, const Tensor& grid, int64_t mode, int64_t, bool) {
          check_grid(x, grid, mode);
          check(Ints(g.sizes()) == Ints(with_spatial(x, Ints(grid.sizes()).slice(1, size_t(grid.dim()) - 2))) &&
                    g.dtype() == x.dtype(),
                "expected a gradient of the result, got shape ", g.sizes());
          return std::array{Meta{x.sizes(), x.dtype()}, Meta{grid.sizes(), grid.dtype()}};
        },
    .kernel = {[](Tensor& gx, Tensor& gg, const Tensor& g, const Tensor& x, const Tensor& grid, int64_t mode,
                  int64_t padding,
                  bool align) { cpu::grid_sample_backward(gx, gg, g, x, grid, sampling(mode, padding, align)); }},
}};

OP_DEFINE(affine_grid){{
    .doc = R"(The grid for grid_sample that an affine map of the output's places gives.

Shape: theta (n, 2, 3) with size (n, c, h, w): the result is (n, h, w, 2); theta (n, 3, 4) with size (n, c, d, h, w): it is
(n, d, h, w, 3). Errors: ValueError where they do not fit.)",
    .composite =
        [](const Tensor& theta, Ints size, OptBool align) {
          check<ValueError>(theta.is_floating_point(), "Expected theta to have floating point type, but got ",
                            name_of(theta.dtype()));
          const int64_t dims = int64_t(size.size()) - 2;
          check<NotImplementedError>(dims == 2 || dims == 3,
                                     "affine_grid only supports 4D and 5D sizes, for 2D and 3D "
                                     "affine transforms, respectively. Got size ",
                                     size);
          check<ValueError>(theta.dim() == 3 && theta.size(-2) == dims && theta.size(-1) == dims + 1,
                            "Expected a batch of ", dims, "D affine matrices of shape Nx", dims, "x", dims + 1,
                            " for size ", size, ". Got ", theta.sizes(), ".");
          for (int64_t s : size) check<ValueError>(s > 0, "Expected non-zero, positive output size. Got ", size);
          const Ints space = size.slice(2, size_t(dims));
          const int64_t count = product(space);
          Tensor base = allocate({{count, dims + 1}, kFloat64});
          for (int64_t p = 0; p < count; ++p) {
            int64_t rest = p;
            double* row = base.data<double>() + p * (dims + 1);
            for (int64_t d = dims - 1; d >= 0; --d) {
              const int64_t n = space[size_t(d)];
              const double at = double(rest % n), far = double(n - 1);
              row[dims - 1 - d] = n == 1 ? 0 : align.value_or(false) ? 2 * at / far - 1 : (2 * at - far) / double(n);
              rest /= n;
            }
            row[dims] = 1;
          }
          Dims sizes{theta.size(0)};
          for (int64_t s : space) sizes.push_back(s);
          sizes.push_back(dims);
          const Tensor places = to_copy(base, theta.dtype(), theta.device());
          return reshape(matmul(places, transpose(theta, 1, 2)), sizes);
        },
}};

}  // namespace rush
