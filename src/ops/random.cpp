// Random numbers: factories, fills and dropout.
//
// Note [Fills with names of their own]: an operator's in-place form has its name with an underscore. Where PyTorch's
// function of that name means something else (normal takes means, bernoulli_ no probabilities from self) or is a
// module (random), the in-place method is an operator itself, named normal_, bernoulli_, random_: a composite that
// calls the in-place form of a hidden fill, which records the change.
#include <cmath>
#include <limits>

#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/random.h"
#include "ops/common.h"

namespace rush {

namespace {

/// The generator for filling `out`.
Generator& chosen(Generator* generator, const Tensor& out) {
  if (!generator) return default_generator(out.device());
  check(generator->device().type == out.device().type, "Expected a '", out.device(),
        "' device type for generator but found '", generator->device(), "'");
  return *generator;
}

/// The result of a fill does not depend on what was there.
constexpr auto no_gradient = [](const Tensor& g, const Tensor&, auto...) { return Grads{zeros_like(g)}; };

template <class Fill>
Tensor drawn(Tensor t, bool requires_grad, Fill&& fill) {
  if (!t.is_meta()) fill(t);
  if (requires_grad) t.requires_grad_();
  return t;
}

Tensor made(Ints size, OptDType dtype, OptDevice device) {
  return allocate({size, dtype.value_or(default_dtype()), device.value_or(kCPU), {}});
}
Tensor made_like(const Tensor& x, OptDType dtype, OptDevice device, OptMemoryFormat format) {
  return empty_like(x, dtype.value_or(x.dtype()), {}, device.value_or(x.device()), false, false, format);
}

struct Bounds {
  int64_t low, high;
};
/// The integers that a dtype holds exactly, in so far as int64 holds them.
Bounds bounds_of(DType t) {
  switch (t) {
    case kFloat16:
      return {-(1 << 11), 1 << 11};
    case kBFloat16:
      return {-(1 << 8), 1 << 8};
    case kFloat32:
      return {-(1 << 24), 1 << 24};
    case kFloat64:
      return {-(int64_t(1) << 53), int64_t(1) << 53};
    default:
      return for_integral(t, []<class T>() {
        return Bounds{int64_t(std::numeric_limits<T>::min()), int64_t(std::numeric_limits<T>::max())};
      });
  }
}

void check_range(DType dtype, int64_t from, int64_t to) {
  check(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
  if (!is_integral(dtype)) return;
  const Bounds b = bounds_of(dtype);
  check(from >= b.low && from <= b.high, "from is out of bounds for ", dtype);
  check(to - 1 >= b.low && to - 1 <= b.high, "to - 1 is out of bounds for ", dtype);
}

Tensor integers_in(Tensor t, int64_t from, int64_t to, bool requires_grad, Generator* generator) {
  check_range(t.dtype(), from, to);
  return drawn(std::move(t), requires_grad,
               [&](Tensor& out) { cpu::integers(out, from, uint64_t(to) - uint64_t(from), chosen(generator, out)); });
}

constexpr auto like_meta = [](const Tensor& x, Generator*) { return like(x); };

void check_continuous(const char* name, const Tensor& x) {
  check(x.is_floating_point(), name,
        " distribution is a continuous probability distribution. dtype must be a floating "
        "point but you specified ",
        x.dtype());
}

void check_std(double std) { check(std >= 0, "normal expects std >= 0.0, but found std ", std); }

void check_std(const Tensor& std) {
  check(!std.is_complex(), "normal expects standard deviation to be non-complex");
  if (std.is_meta()) return;
  check(sum(std < 0).item<int64_t>() == 0, "normal expects all elements of std >= 0.0");
}

Tensor standard_normal(const Tensor& like, Generator* generator) {
  check(!is_integral(like.dtype()), "not implemented for '", scalar_name(like.dtype()),
        "': normal needs floating dtypes");
  return drawn(empty_like(like), false, [&](Tensor& out) { cpu::normal(out, 0, 1, chosen(generator, out)); });
}

void check_dropout(double p) { check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p); }

/// 1 with probability 1 - p, for each element or for each channel, to broadcast against x.
Tensor kept(const Tensor& x, double p, bool by_feature) {
  Dims sizes = x.sizes();
  if (by_feature) {
    check(x.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
    for (size_t d = 2; d < sizes.size(); ++d) sizes[d] = 1;
  }
  Tensor noise = by_feature ? allocate({sizes, x.dtype(), x.device(), {}}) : empty_like(x);
  return drawn(noise, false, [&](Tensor& out) { cpu::bernoulli(out, 1 - p, default_generator(out.device())); });
}

Tensor scaled_dropout(const Tensor& x, double p) {
  check_dropout(p);
  if (p == 1) return x * zeros_like(x);
  return x * div(kept(x, p, true), 1 - p);
}

/// Dropped elements take the value that SELU saturates at; then the result is brought back to mean 0 and variance 1.
/// Klambauer et al. 2017, arXiv:1706.02515.
Tensor selu_dropout(const Tensor& x, double p, bool by_feature) {
  check_dropout(p);
  if (p == 1) return x * zeros_like(x);
  constexpr double alpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor noise = kept(x, p, by_feature);
  const Tensor shift = (noise - 1) * (alpha * a) + alpha * a * p;
  return x * (noise * a) + shift;
}

}  // namespace

OP_DEFINE(rand){{
    .doc = R"(Uniform random numbers from [0, 1).)",
    .composite =
        [](Ints size, Generator* generator, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad) {
          return drawn(made(size, dtype, device), requires_grad,
                       [&](Tensor& out) { cpu::uniform(out, 0, 1, chosen(generator, out)); });
        },
    .random = true,
}};

OP_DEFINE(randn){{
    .doc = R"(Random numbers of the standard normal distribution; of complex dtypes, with variance 1.)",
    .composite =
        [](Ints size, Generator* generator, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad) {
          return drawn(made(size, dtype, device), requires_grad,
                       [&](Tensor& out) { cpu::normal(out, 0, 1, chosen(generator, out)); });
        },
    .random = true,
}};

OP_DEFINE(randint){
    {
        .doc = R"(Random integers from 0 to ``high - 1``; int64 unless another dtype is named.)",
        .composite =
            [](int64_t high, Ints size, Generator* generator, OptDType dtype, OptLayout, OptDevice device, OptBool,
               bool requires_grad) {
              return integers_in(made(size, dtype.value_or(kInt64), device), 0, high, requires_grad, generator);
            },
        .random = true,
    },
    {
        .doc = R"(Random integers from ``low`` to ``high - 1``; int64 unless another dtype is named.)",
        .composite =
            [](int64_t low, int64_t high, Ints size, Generator* generator, OptDType dtype, OptLayout, OptDevice device,
               OptBool, bool requires_grad) {
              return integers_in(made(size, dtype.value_or(kInt64), device), low, high, requires_grad, generator);
            },
        .random = true,
    }};

OP_DEFINE(randperm){{
    .doc = R"(The integers from 0 to ``n - 1`` in random order.)",
    .composite =
        [](int64_t n, Generator* generator, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad) {
          check(n >= 0, "n must be non-negative, got ", n);
          return drawn(made({n}, dtype.value_or(kInt64), device), requires_grad,
                       [&](Tensor& out) { cpu::permutation(out, chosen(generator, out)); });
        },
    .random = true,
}};

OP_DEFINE(rand_like){{
    .doc = R"(Uniform random numbers from [0, 1) with the input's size, dtype and device.)",
    .composite =
        [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad,
           OptMemoryFormat format, Generator* generator) {
          return drawn(made_like(x, dtype, device, format), requires_grad,
                       [&](Tensor& out) { cpu::uniform(out, 0, 1, chosen(generator, out)); });
        },
    .random = true,
}};

OP_DEFINE(randn_like){{
    .doc = R"(Standard normal random numbers with the input's size, dtype and device.)",
    .composite =
        [](const Tensor& x, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad,
           OptMemoryFormat format, Generator* generator) {
          return drawn(made_like(x, dtype, device, format), requires_grad,
                       [&](Tensor& out) { cpu::normal(out, 0, 1, chosen(generator, out)); });
        },
    .random = true,
}};

OP_DEFINE(randint_like){
    {
        .doc = R"(Random integers from 0 to ``high - 1`` with the input's size, dtype and device.)",
        .composite =
            [](const Tensor& x, int64_t high, OptDType dtype, OptLayout, OptDevice device, OptBool, bool requires_grad,
               OptMemoryFormat format, Generator* generator) {
              return integers_in(made_like(x, dtype, device, format), 0, high, requires_grad, generator);
            },
        .random = true,
    },
    {
        .doc = R"(Random integers from ``low`` to ``high - 1`` with the input's size, dtype and device.)",
        .composite =
            [](const Tensor& x, int64_t low, int64_t high, OptDType dtype, OptLayout, OptDevice device, OptBool,
               bool requires_grad, OptMemoryFormat format, Generator* generator) {
              return integers_in(made_like(x, dtype, device, format), low, high, requires_grad, generator);
            },
        .random = true,
    }};

OP_DEFINE(normal){
    {
        .doc = R"(Normal random numbers of one mean and standard deviation.)",
        .composite =
            [](double mean, double std, Ints size, Generator* generator, OptDType dtype, OptLayout, OptDevice device,
               OptBool, bool requires_grad) {
              check_std(std);
              return drawn(made(size, dtype, device), requires_grad,
                           [&](Tensor& out) { cpu::normal(out, mean, std, chosen(generator, out)); });
            },
        .random = true,
    },
    {
        .doc = R"(Normal random numbers, each with its own mean and standard deviation.)",
        .composite =
            [](const Tensor& mean, const Tensor& std, Generator* generator) {
              check_std(std);
              const Tensor shape =
                  allocate({broadcast(mean.sizes(), std.sizes()), promote_tensors(mean, std), mean.device(), {}});
              return standard_normal(shape, generator) * std + mean;
            },
        .vjp =
            [](const Tensor&, const Tensor&, const Tensor&, const Tensor&, Generator*) {
              return Grads{Tensor(), Tensor()};
            },
        .random = true,
    },
    {
        .doc = R"(Normal random numbers of one mean, each with its own standard deviation.)",
        .composite =
            [](double mean, const Tensor& std, Generator* generator) {
              check_std(std);
              return standard_normal(std, generator) * std + mean;
            },
        .vjp = [](const Tensor&, const Tensor&, double, const Tensor&, Generator*) { return Grads{Tensor()}; },
        .random = true,
    },
    {
        .doc = R"(Normal random numbers of one standard deviation, each with its own mean.)",
        .composite =
            [](const Tensor& mean, double std, Generator* generator) {
              check_std(std);
              return drawn(empty_like(mean), false,
                           [&](Tensor& out) { cpu::normal(out, 0, std, chosen(generator, out)); }) +
                     mean;
            },
        .vjp = no_gradient,
        .random = true,
    }};

OP_DEFINE(bernoulli){{
                         .doc = R"(1 with the probability that self has at that place, else 0.)",
                         .infer = like_meta,
                         .kernel = {[](Tensor& out, const Tensor& p, Generator* generator) {
                           cpu::bernoulli(out, p, chosen(generator, out));
                         }},
                         .vjp = no_gradient,
                         .random = true,
                     },
                     {
                         .doc = R"(1 with probability ``p``, else 0, in the shape of self.)",
                         .infer =
                             [](const Tensor& x, double p, Generator*) {
                               check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
                               return like(x);
                             },
                         .kernel = {[](Tensor& out, const Tensor&, double p, Generator* generator) {
                           cpu::bernoulli(out, p, chosen(generator, out));
                         }},
                         .vjp = no_gradient,
                         .random = true,
                     }};

OP_DEFINE(multinomial){{
    .doc =
        R"(Indices drawn with the given weights: of shape (num_samples,) from weights (n), of (rows, num_samples) from (rows, n).

Errors: RuntimeError for negative, infinite or all-zero weights, and for more samples than weights without replacement.)",
    .infer =
        [](const Tensor& weights, int64_t samples, bool replacement, Generator*) {
          check(weights.dim() == 1 || weights.dim() == 2, "prob_dist must be 1 or 2 dim");
          check(weights.is_floating_point(),
                "multinomial only supports floating-point dtypes for input, got: ", scalar_name(weights.dtype()));
          check(samples > 0, "cannot sample n_sample <= 0 samples");
          check(replacement || samples <= weights.sizes().back(),
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
          Dims sizes = weights.sizes();
          sizes[sizes.size() - 1] = samples;
          return Meta{sizes, kInt64};
        },
    .kernel = {[](Tensor& out, const Tensor& weights, int64_t, bool replacement, Generator* generator) {
      cpu::multinomial(out, weights, replacement, chosen(generator, out));
    }},
    .random = true,
}};

OP_DEFINE(poisson){{
    .doc = R"(Poisson random numbers with the rates in ``input``.)",
    .infer = like_meta,
    .kernel = {[](Tensor& out, const Tensor& rates, Generator* generator) {
      cpu::poisson(out, rates, chosen(generator, out));
    }},
    .vjp = no_gradient,
    .random = true,
}};

OP_DEFINE(uniform){{
    .doc = R"(Uniform random numbers from [from, to) in the shape of self.)",
    .infer =
        [](const Tensor& x, double from, double to, Generator*) {
          check(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, double from, double to, Generator* generator) {
      cpu::uniform(out, from, to, chosen(generator, out));
    }},
    .vjp = no_gradient,
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(log_normal){{
    .doc = R"(Numbers whose logarithms are normal with the given mean and standard deviation, in the shape of self.)",
    .infer =
        [](const Tensor& x, double, double std, Generator*) {
          check(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, double mean, double std, Generator* generator) {
      cpu::log_normal(out, mean, std, chosen(generator, out));
    }},
    .vjp = no_gradient,
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(exponential){{
    .doc = R"(Exponential random numbers with the rate ``lambd`` in the shape of self.)",
    .infer =
        [](const Tensor& x, double lambd, Generator*) {
          check(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
          check_continuous("Exponential", x);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, double lambd, Generator* generator) {
      cpu::exponential(out, lambd, chosen(generator, out));
    }},
    .vjp = no_gradient,
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(cauchy){{
    .doc = R"(Cauchy random numbers in the shape of self.)",
    .infer =
        [](const Tensor& x, double, double sigma, Generator*) {
          check(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
          check_continuous("Cauchy", x);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, double median, double sigma, Generator* generator) {
      cpu::cauchy(out, median, sigma, chosen(generator, out));
    }},
    .vjp = no_gradient,
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(geometric){{
    .doc = R"(The number of trials up to the first success, each of probability ``p``, in the shape of self.)",
    .infer =
        [](const Tensor& x, double p, Generator*) {
          check(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, double p, Generator* generator) {
      cpu::geometric(out, p, chosen(generator, out));
    }},
    .vjp = no_gradient,
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(normal_fill){{
    .doc = R"(Normal random numbers in the shape of self.)",
    .infer =
        [](const Tensor& x, double, double std, Generator*) {
          check_std(std);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, double mean, double std, Generator* generator) {
      cpu::normal(out, mean, std, chosen(generator, out));
    }},
    .vjp = no_gradient,
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(normal_){{
    .doc = R"(Fills the tensor with normal random numbers.)",
    .composite =
        [](const Tensor& self, double mean, double std, Generator* generator) {
          Tensor x = self;
          return in_place(normal_fill, x, mean, std, generator);
        },
    .random = true,
}};

OP_DEFINE(bernoulli_fill){{
    .doc = R"(1 with the probabilities ``p``, broadcast to the shape of self, else 0.)",
    .infer =
        [](const Tensor& x, const Tensor& p, Generator*) {
          check(Ints(broadcast(x.sizes(), p.sizes())) == Ints(x.sizes()), "probabilities of shape ", p.sizes(),
                " do not broadcast to shape ", x.sizes());
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, const Tensor& p, Generator* generator) {
      if (p.impl()->wrapped_number)
        cpu::bernoulli(out, p.item<double>(), chosen(generator, out));
      else
        cpu::bernoulli(out, p, chosen(generator, out));
    }},
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor&, Generator*) {
          return Grads{zeros_like(g), Tensor()};
        },
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(bernoulli_){{
                          .doc = R"(Fills the tensor with 1 with the probabilities ``p``, else 0.)",
                          .composite =
                              [](const Tensor& self, const Tensor& p, Generator* generator) {
                                if (p.impl()->wrapped_number) return bernoulli_(self, p.item<double>(), generator);
                                Tensor x = self;
                                return in_place(bernoulli_fill, x, p, generator);
                              },
                          .random = true,
                      },
                      {
                          .doc = R"(Fills the tensor with 1 with probability ``p``, else 0.)",
                          .composite =
                              [](const Tensor& self, double p, Generator* generator) {
                                check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
                                Tensor x = self;
                                return in_place(bernoulli_fill, x, Tensor(p), generator);
                              },
                          .random = true,
                      }};

OP_DEFINE(random_fill){{
    .doc = R"(Random integers in the shape of self: from ``from`` to ``to - 1``, or to the largest of the dtype.)",
    .infer =
        [](const Tensor& x, OptInt from, OptInt to, Generator*) {
          if (to) check_range(x.dtype(), from.value_or(0), *to);
          return like(x);
        },
    .kernel = {[](Tensor& out, const Tensor&, OptInt from, OptInt to, Generator* generator) {
      if (!from && !to) return cpu::integers(out, chosen(generator, out));
      const int64_t low = from.value_or(0);
      const uint64_t end = to ? uint64_t(*to) : uint64_t(bounds_of(out.dtype()).high) + 1;
      cpu::integers(out, low, end - uint64_t(low), chosen(generator, out));
    }},
    .vjp = no_gradient,
    .overwrites = true,
    .random = true,
}};

OP_DEFINE(random_){
    {
        .doc = R"(Fills the tensor with random integers from 0 to the largest of its dtype.)",
        .composite =
            [](const Tensor& self, Generator* generator) {
              Tensor x = self;
              return in_place(random_fill, x, OptInt(), OptInt(), generator);
            },
        .random = true,
    },
    {
        .doc = R"(Fills the tensor with random integers from 0 to ``to - 1``.)",
        .composite =
            [](const Tensor& self, int64_t to, Generator* generator) {
              Tensor x = self;
              return in_place(random_fill, x, OptInt(0), OptInt(to), generator);
            },
        .random = true,
    },
    {
        .doc = R"(Fills the tensor with random integers from ``from`` to ``to - 1``, or to the largest of its dtype.)",
        .composite =
            [](const Tensor& self, int64_t from, OptInt to, Generator* generator) {
              Tensor x = self;
              return in_place(random_fill, x, OptInt(from), to, generator);
            },
        .random = true,
    }};

OP_DEFINE(native_dropout){{
    .doc =
        R"(Dropout with its mask: elements are zeroed with probability ``p``, the others scaled by ``1 / (1 - p)``.)",
    .infer =
        [](const Tensor& x, double p, OptBool) {
          check_dropout(p);
          return std::array{like(x), like(x, kBool)};
        },
    .kernel = {[](Tensor& out, Tensor& mask, const Tensor& x, double p, OptBool train) {
      if (train.value_or(true)) return cpu::dropout(out, mask, x, p, default_generator(out.device()));
      cpu::copy(out, x);
      cpu::fill(mask, Scalar(true));
    }},
    .saves = "mask",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor&, double p, OptBool train) {
          const double scale = !train.value_or(true) ? 1 : p == 1 ? 0 : 1 / (1 - p);
          return Grads{native_dropout_backward(g[0], results[1], scale)};
        },
    .random = true,
}};

OP_DEFINE(native_dropout_backward){{
    .doc = R"(``grad_output * mask * scale``: the gradient of native_dropout.)",
    .infer =
        [](const Tensor& g, const Tensor& mask, double) {
          check(mask.dtype() == kBool, "Mask should be Bool Scalar Type, got ", scalar_name(mask.dtype()));
          check(g.sizes() == mask.sizes(), "the mask has shape ", mask.sizes(), ", the gradient ", g.sizes());
          return like(g);
        },
    .kernel = {[](Tensor& out, const Tensor& g, const Tensor& mask, double scale) {
      cpu::dropout_backward(out, g, mask, scale);
    }},
    .saves = "mask",
    .vjp =
        [](const Tensor& g, const Tensor&, const Tensor&, const Tensor& mask, double scale) {
          return Grads{native_dropout_backward(g, mask, scale), Tensor()};
        },
}};

OP_DEFINE(dropout){{
    .doc = R"(In training, zeroes elements with probability ``p`` and scales the others by ``1 / (1 - p)``.

Source: Hinton et al. 2012, arXiv:1207.0580.)",
    .composite =
        [](const Tensor& x, double p, bool train) {
          check_dropout(p);
          if (!train || p == 0 || x.numel() == 0) return x;
          if (x.is_floating_point()) return native_dropout(x, p, true)[0];
          return p == 1 ? x * zeros_like(x) : x * div(kept(x, p, false), 1 - p);
        },
    .in_place = true,
}};

OP_DEFINE(feature_dropout){{
    .doc =
        R"(In training, zeroes whole channels (dimension 1) with probability ``p`` and scales the others by ``1 / (1 - p)``.)",
    .composite =
        [](const Tensor& x, double p, bool train) {
          check_dropout(p);
          return !train || p == 0 || x.numel() == 0 ? x : scaled_dropout(x, p);
        },
    .in_place = true,
}};

OP_DEFINE(alpha_dropout){{
    .doc = R"(Dropout that keeps mean and variance of values from SELU.)",
    .composite =
        [](const Tensor& x, double p, bool train) {
          check_dropout(p);
          return !train || p == 0 || x.numel() == 0 ? x : selu_dropout(x, p, false);
        },
    .in_place = true,
}};

OP_DEFINE(feature_alpha_dropout){{
    .doc = R"(Alpha dropout of whole channels (dimension 1).)",
    .composite =
        [](const Tensor& x, double p, bool train) {
          check_dropout(p);
          return !train || p == 0 || x.numel() == 0 ? x : selu_dropout(x, p, true);
        },
    .in_place = true,
}};

OP_DEFINE(random_slopes){{
    .doc = R"(Elements above 0 as they are, others times a slope drawn from [lower, upper); and the slopes.)",
    .infer =
        [](const Tensor& x, double, double, Generator*) {
          return std::array{like(x), like(x)};
        },
    .kernel = {[](Tensor& out, Tensor& slopes, const Tensor& x, double lower, double upper, Generator* generator) {
      cpu::random_slopes(out, slopes, x, lower, upper, chosen(generator, out));
    }},
    .saves = "slopes",
    .vjp = [](const Tensors& g, const Tensors& results, const Tensor&, double, double,
              Generator*) { return Grads{g[0] * results[1].detach()}; },
    .random = true,
}};

OP_DEFINE(rrelu){{
    .doc = R"(Leaky relu with slopes drawn from [lower, upper) in training, and with the mean slope else.

Source: Xu et al. 2015, arXiv:1505.00853.)",
    .composite =
        [](const Tensor& x, double lower, double upper, bool training, Generator* generator) {
          check(lower <= upper, "Lower bound should be less than or equal to the upper bound");
          return training ? random_slopes(x, lower, upper, generator)[0] : leaky_relu(x, (lower + upper) / 2);
        },
    .in_place = true,
    .random = true,
}};

}  // namespace rush
