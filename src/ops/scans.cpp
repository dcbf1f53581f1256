// Running totals along a dimension, differences and integrals.
#include "kernels/cpu/scans.h"

#include <cmath>

#include "ops/reduce.h"

namespace rush {

namespace {

Meta scan_meta(const Tensor& x, int64_t dim, OptDType dtype) {
  wrap_dim(dim, x.dim());
  return {x.sizes(), dtype.value_or(is_integral(x.dtype()) ? kInt64 : x.dtype())};
}
Tensor reversed(const Tensor& x, int64_t dim) { return x.dim() ? flip(x, Ints(dim)) : x; }
Tensor reverse_cumsum(const Tensor& x, int64_t dim) { return reversed(cumsum(reversed(x, dim), dim), dim); }

std::array<Meta, 2> cum_extreme_meta(const Tensor& x, int64_t dim) {
  check<NotImplementedError>(!x.is_complex(), "not implemented for '", scalar_name(x.dtype()), "'");
  wrap_dim(dim, x.dim());
  return {Meta{x.sizes(), x.dtype()}, Meta{x.sizes(), kInt64}};
}
Grads cum_extreme_vjp(const Tensors& g, const Tensors& results, const Tensor& x, int64_t dim) {
  return {x.dim() ? scatter_add(zeros_like(g[0]), dim, results[1], g[0]) : g[0]};
}

/// sum over j >= i of g_j * (product of x up to j without x_i), which needs no division: from the end backwards
/// s_i = g_i + x_(i+1) s_(i+1), times the product of what comes before i.
Tensor cumprod_backward(const Tensor& g, const Tensor& x, int64_t dim) {
  const int64_t n = x.sizes()[dim];
  std::vector<Tensor> parts(static_cast<size_t>(n));
  Tensor s;
  for (int64_t i = n - 1; i >= 0; --i) {
    const Tensor gi = select(g, dim, i);
    s = s.defined() ? gi + conjugate(select(x, dim, i + 1)) * s : gi;
    parts[static_cast<size_t>(i)] = s;
  }
  const Tensor before = cat({ones_like(narrow(x, dim, 0, 1)), cumprod(narrow(x, dim, 0, n - 1), dim)}, dim);
  return stack(parts, dim) * conjugate(before);
}

Tensor part(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return narrow(x, dim, start, std::max<int64_t>(length, 0));
}

/// What lies between neighbours along `dim`: the mean of each two values of y times the step between them.
Tensor trapezoids(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim()), n = y.sizes()[d];
  const Tensor pairs = part(y, d, 0, n - 1) + part(y, d, 1, n - 1);
  Tensor steps;
  if (x.dim() == 1 && y.dim() > 1) {
    check(x.sizes()[0] == n, "trapezoid: There must be one `x` value for each sample point");
    Dims sizes(static_cast<size_t>(y.dim()), 1);
    sizes[static_cast<size_t>(d)] = std::max<int64_t>(n - 1, 0);
    steps = reshape(part(x, 0, 1, n - 1) - part(x, 0, 0, n - 1), sizes);
  } else {
    const int64_t at = d - y.dim() + x.dim(), m = at < 0 ? 1 : x.sizes()[at];
    check(at >= 0 && (m == n || m == 1), "trapezoid: x of shape ", x.sizes(), " has no step for each of y's ", n,
          " along dimension ", dim);
    steps = part(x, at, 1, m - 1) - part(x, at, 0, m - 1);
  }
  return pairs * steps / 2;
}
Tensor trapezoids(const Tensor& y, Scalar dx, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim()), n = y.sizes()[d];
  return (part(y, d, 0, n - 1) + part(y, d, 1, n - 1)) * Tensor(dx) / 2;
}
Tensor floats(const Tensor& y) { return is_integral(y.dtype()) ? cast(y, default_dtype()) : y; }
template <class Step>
Tensor integral(const Tensor& y, const Step& step, int64_t dim) {
  if (y.sizes()[wrap_dim(dim, y.dim())] == 0) return sum(zeros_like(floats(y)), Ints({dim}));
  return sum(trapezoids(y, step, dim), Ints({dim}));
}

}  // namespace

OP_DEFINE(cumsum){{
    .doc = R"(Running sums along ``dim``; integers sum as int64, ``dtype`` converts the elements first.)",
    .infer = scan_meta,
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, OptDType) {
      cpu::cumsum(out, x, wrap_dim(dim, x.dim()));
    }},
    .vjp = [](const Tensor& g, const Tensor&, const Tensor&, int64_t dim,
              OptDType) { return Grads{reverse_cumsum(g, dim)}; },
    .in_place = true,
    .autocast = on_cuda(Autocast::fp32),
    .onnx = "CumSum(self, dim)",
}};

OP_DEFINE(cumprod){{
    .doc = R"(Running products along ``dim``; integers multiply as int64, ``dtype`` converts the elements first.)",
    .infer = scan_meta,
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim, OptDType) {
      cpu::cumprod(out, x, wrap_dim(dim, x.dim()));
    }},
    .saves = "self, result",
    .vjp =
        [](const Tensor& g, const Tensor& result, const Tensor& x, int64_t dim, OptDType) {
          if (x.dim() == 0) return Grads{g};
          const int64_t d = wrap_dim(dim, x.dim());
          if (x.numel() == 0) return Grads{zeros_like(x)};
          if (any(eq(x, 0)).item<bool>()) return Grads{cumprod_backward(g, x, d)};
          return Grads{reverse_cumsum(g * conjugate(result), d) / conjugate(x)};
        },
    .in_place = true,
    .autocast = on_cuda(Autocast::fp32),
}};

OP_DEFINE(cummax){{
    .doc = R"(The largest element so far along ``dim`` and the last index where it was met. NaN, once met, stays.)",
    .infer = cum_extreme_meta,
    .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, int64_t dim) {
      cpu::cum_extreme(values, indices, x, wrap_dim(dim, x.dim()), true);
    }},
    .saves = "self.shape, indices",
    .vjp = cum_extreme_vjp,
}};

OP_DEFINE(cummin){{
    .doc = R"(The smallest element so far along ``dim`` and the last index where it was met. NaN, once met, stays.)",
    .infer = cum_extreme_meta,
    .kernel = {[](Tensor& values, Tensor& indices, const Tensor& x, int64_t dim) {
      cpu::cum_extreme(values, indices, x, wrap_dim(dim, x.dim()), false);
    }},
    .saves = "self.shape, indices",
    .vjp = cum_extreme_vjp,
}};

OP_DEFINE(logcumsumexp){{
    .doc = R"(The logarithm of running sums of exponentials along ``dim``, computed without overflow.)",
    .infer =
        [](const Tensor& x, int64_t dim) {
          check<NotImplementedError>(!is_integral(x.dtype()), "\"logcumsumexp_out_cpu\" not implemented for '",
                                     scalar_name(x.dtype()), "'");
          wrap_dim(dim, x.dim());
          return Meta{x.sizes(), x.dtype()};
        },
    .kernel = {[](Tensor& out, const Tensor& x, int64_t dim) { cpu::logcumsumexp(out, x, wrap_dim(dim, x.dim())); }},
    .saves = "self, result",
    .vjp =
        [](const Tensor& g, const Tensor& result, const Tensor& x, int64_t dim) {
          // sum over j >= i of g_j exp(x_i - result_j)
          if (grad_enabled() && !x.is_complex() && x.numel()) {  // directly, so that it has a second derivative
            const Tensor top = detach(amax(x, Ints({dim}), true));
            return Grads{exp(x - top) * reversed(cumsum(reversed(g * exp(top - result), dim), dim), dim)};
          }
          // in logarithms too, one for each sign of g
          const Tensor back = conjugate(result), forth = conjugate(x);
          const auto total = [&](const Tensor& logs) {
            return exp(reversed(logcumsumexp(reversed(logs, dim), dim), dim) + forth);
          };
          if (x.is_complex()) return Grads{total(log(g) - back)};
          const auto where_positive = [&](const Tensor& h) {
            const Tensor none = le(h, 0);
            return masked(log(masked(h, none, 1)) - back, none, -HUGE_VAL);
          };
          return Grads{total(where_positive(g)) - total(where_positive(-g))};
        },
}};

OP_DEFINE(diff){{
    .doc = R"(The ``n``-th forward difference along ``dim``, of self with ``prepend`` and ``append`` at its ends.

Bools differ by exclusive or.)",
    .composite =
        [](const Tensor& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
          check(x.dim() >= 1, "diff expects input to be at least one-dimensional");
          check(n >= 0, "order must be non-negative but got ", n);
          if (n == 0) return clone(x);
          const int64_t d = wrap_dim(dim, x.dim());
          std::vector<Tensor> parts;
          for (const Tensor* t : {&prepend, &x, &append}) {
            if (!t->defined()) continue;
            check(t->dim() == x.dim(), "diff expects prepend or append to be the same dimension as input");
            for (int64_t i = 0; i < x.dim(); ++i)
              check(i == d || t->sizes()[i] == x.sizes()[i],
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    "differencing dimension; input.size(",
                    i, ") = ", x.sizes()[i], ", but got tensor.size(", i, ") = ", t->sizes()[i]);
            parts.push_back(*t);
          }
          Tensor y = parts.size() == 1 ? x : cat(parts, d);
          for (int64_t i = 0; i < std::min(n, y.sizes()[d] + n); ++i) {
            const int64_t left = y.sizes()[d] - 1;
            if (left < 0) break;
            const Tensor before = narrow(y, d, 0, left), after = narrow(y, d, 1, left);
            y = y.dtype() == kBool ? ne(after, before) : after - before;
          }
          return y;
        },
}};

OP_DEFINE(trapezoid){{
                         .doc = R"(The integral of y over x along ``dim`` by the trapezoidal rule.)",
                         .composite = [](const Tensor& y, const Tensor& x, int64_t dim) { return integral(y, x, dim); },
                     },
                     {
                         .doc = R"(The integral of y along ``dim`` by the trapezoidal rule, with steps of ``dx``.)",
                         .composite = [](const Tensor& y, Scalar dx, int64_t dim) { return integral(y, dx, dim); },
                     }};

OP_DEFINE(trapz){{
                     .doc = R"(Another name of trapezoid.)",
                     .composite = [](const Tensor& y, const Tensor& x, int64_t dim) { return trapezoid(y, x, dim); },
                 },
                 {
                     .doc = R"(Another name of trapezoid.)",
                     .composite = [](const Tensor& y, Scalar dx, int64_t dim) { return trapezoid(y, dx, dim); },
                 }};

OP_DEFINE(cumulative_trapezoid){
    {
        .doc = R"(Running integrals of y over x along ``dim`` by the trapezoidal rule.)",
        .composite = [](const Tensor& y, const Tensor& x, int64_t dim) { return cumsum(trapezoids(y, x, dim), dim); },
    },
    {
        .doc = R"(Running integrals of y along ``dim`` by the trapezoidal rule, with steps of ``dx``.)",
        .composite = [](const Tensor& y, Scalar dx, int64_t dim) { return cumsum(trapezoids(y, dx, dim), dim); },
    }};

}  // namespace rush
