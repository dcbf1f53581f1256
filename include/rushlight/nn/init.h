// Ways to fill a tensor with its first values: Python's rushlight.nn.init, with the same draws. All work in place,
// record no gradients and return the tensor; `generator` is the one they draw from (null: the default one).
//
//   rush::nn::init::kaiming_normal_(conv->weight, {.mode = "fan_out", .nonlinearity = "relu"});
#pragma once
#include <string_view>
#include <utility>

#include "rushlight/tensor.h"

namespace rush::nn::init {

/// The factor by which to scale weights before a nonlinearity so that activations keep their variance. `param` is the
/// slope of "leaky_relu" (0.01). Throws ValueError for a name that is not known.
double calculate_gain(std::string_view nonlinearity, OptDouble param = {});
/// How many inputs reach one output, and how many outputs one input reaches. Throws ValueError below 2 dimensions.
std::pair<int64_t, int64_t> fan_in_and_fan_out(const Tensor& weight);

/// Uniform on [a, b).
Tensor uniform_(Tensor tensor, double a = 0, double b = 1, Generator* generator = nullptr);
Tensor normal_(Tensor tensor, double mean = 0, double std = 1, Generator* generator = nullptr);
/// Normal, cut off below `a` and above `b`: by rejection from the normal distribution where at least 30 % of it lies
/// within, and else from the uniform one.
Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2,
                     Generator* generator = nullptr);
Tensor constant_(Tensor tensor, Scalar value);
Tensor ones_(Tensor tensor);
Tensor zeros_(Tensor tensor);
/// The identity matrix. Throws ValueError unless there are 2 dimensions.
Tensor eye_(Tensor tensor);
/// Makes a convolution's weight pass as many channels of each group through unchanged as there are. Throws ValueError
/// unless there are 3, 4 or 5 dimensions, of which `groups` divides the first.
Tensor dirac_(Tensor tensor, int64_t groups = 1);
/// Uniform in ±gain * sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio 2010.
Tensor xavier_uniform_(Tensor tensor, double gain = 1, Generator* generator = nullptr);
/// Normal with deviation gain * sqrt(2 / (fan_in + fan_out)). Source: Glorot and Bengio 2010.
Tensor xavier_normal_(Tensor tensor, double gain = 1, Generator* generator = nullptr);

struct KaimingOptions {
  double a = 0;  // the slope of leaky_relu
  std::string_view mode = "fan_in", nonlinearity = "leaky_relu";
  Generator* generator = nullptr;
};
/// Uniform in ±gain * sqrt(3 / fan). Throws ValueError for another mode or nonlinearity. Source: He et al. 2015.
Tensor kaiming_uniform_(Tensor tensor, const KaimingOptions& options = {});
/// Normal with deviation gain / sqrt(fan). Throws ValueError for another mode or nonlinearity. Source: He et al. 2015.
Tensor kaiming_normal_(Tensor tensor, const KaimingOptions& options = {});

/// Makes each column of a matrix zero in the share `sparsity` of its rows, and normal elsewhere. Throws ValueError
/// unless there are 2 dimensions. Source: Martens 2010.
Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01, Generator* generator = nullptr);

}  // namespace rush::nn::init
