// Resizing and sampling of images (batch, channels, spatial...): one to three spatial dimensions.
#pragma once
#include <span>
#include <string_view>

#include "kernels/sampling.h"
#include "rushlight/tensor.h"

namespace rush::cpu {

/// How sizes change: modes as interpolate names them; a scale of 0 stands for input size / output size.
struct Resampling {
  std::string_view mode;
  bool align_corners = false, antialias = false;
  std::span<const double> scales;
};

/// Each output element is a weighted sum of input elements, dimension by dimension.
void resample(Tensor& out, const Tensor& x, const Resampling& how);
/// The transpose of the same.
void resample_backward(Tensor& grad_x, const Tensor& grad, const Resampling& how);

using interpolation::GridSampling;
using interpolation::Interpolation;
using interpolation::Padding;

/// out[n, c, p...] = x[n, c] at the place grid[n, p...] (last dimension: x, y[, z] from -1 to 1).
void grid_sample(Tensor& out, const Tensor& x, const Tensor& grid, const GridSampling& how);
void grid_sample_backward(Tensor& grad_x, Tensor& grad_grid, const Tensor& grad, const Tensor& x, const Tensor& grid,
                          const GridSampling& how);

}  // namespace rush::cpu
