// Attention: a kernel that never holds the matrix of scores, and matrix products with softmax where that does not reach
// and in second derivatives.
#include "kernels/cpu/attention.h"

#include <cmath>
#include <limits>

#include "ops/again.h"

namespace rush {

namespace {

/// Heads repeated so that there are as many as the query has: each serves a group of query heads.
Tensor repeat_heads(const Tensor& x, int64_t heads) {
  const int64_t own = x.size(-3);
  if (own == heads) return x;
  check(own > 0 && heads % own == 0, "Number of heads in key and value must divide the number of heads in query, got ",
        own, " and ", heads);
  const Tensor apart = unsqueeze(x, -3);
  Dims sizes = apart.sizes();
  sizes[sizes.size() - 3] = heads / own;
  Dims joined = x.sizes();
  joined[joined.size() - 3] = heads;
  return reshape(expand(apart, sizes), joined);
}

/// Attention by its definition.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout_p, bool is_causal,
              double scale) {
  Tensor scores = matmul(q * Tensor(scale), transpose(k, -2, -1));
  const Tensor never(-std::numeric_limits<double>::infinity());
  if (is_causal) {
    const Tensor row = unsqueeze(arange(q.size(-2), kInt64, {}, q.device()), -1);
    scores = where(arange(k.size(-2), kInt64, {}, q.device()) <= row, scores, never);
  } else if (mask.defined()) {
    scores = mask.dtype() == kBool ? where(mask, scores, never)
                                   : scores + (mask.dtype() == q.dtype() ? mask : cast(mask, q.dtype()));
  }
  Tensor weights = softmax(scores, -1);
  if (mask.defined()) {
    const Tensor seen = sum(scores != never, Ints({-1}), true);
    weights = where(seen == Tensor(0), Tensor(0.0), weights);
  }
  if (dropout_p > 0) weights = dropout(weights, dropout_p, true);
  return matmul(weights, v);
}

DType computing_dtype(const Tensor& x) { return x.itemsize() == 2 ? kFloat32 : x.dtype(); }

/// Whether the kernel does it. It wants the same leading dimensions everywhere.
bool has_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout_p) {
  const auto leading = [](const Tensor& x) { return Ints(x.sizes()).slice(0, size_t(x.dim() - 2)); };
  return q.device().is_cpu() && is_floating(q.dtype()) && dropout_p == 0 && leading(q) == leading(k) &&
         leading(q) == leading(v) && q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2) && q.numel() > 0 &&
         k.numel() > 0 && v.numel() > 0 && !(mask.defined() && (mask.requires_grad() || mask.dim() > q.dim()));
}

Tensor with_near_elements(const Tensor& x) { return x.strides().back() == 1 ? x : contiguous(x); }

/// A result (..., rows, columns) whose leading dimensions lie as those of x: heads inside of rows, if they do there.
Meta laid_out_as(const Tensor& x, int64_t columns, DType dtype) {
  Dims sizes = x.sizes();
  sizes[sizes.size() - 1] = columns;
  if (x.dim() != 4 || x.strides()[1] >= x.strides()[2]) return {sizes, dtype};
  const int64_t row = sizes[1] * columns;
  return {sizes, dtype, {}, Dims{sizes[2] * row, columns, row, 1}};
}

/// The mask as the kernel takes it: of the scores' sizes, and bool or of the computing dtype.
Tensor whole_mask(const Tensor& mask, const Tensor& q, const Tensor& k) {
  if (!mask.defined()) return mask;
  const DType t = computing_dtype(q);
  Dims sizes = q.sizes();
  sizes[sizes.size() - 1] = k.size(-2);
  return expand(mask.dtype() == kBool || mask.dtype() == t ? mask : cast(mask, t), sizes);
}

// Two operators of this file alone, which are in no index.
extern const Op<
    "_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float scale) -> (Tensor output, "
    "Tensor logsumexp)">
    attention;
extern const Op<
    "_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor output, Tensor "
    "logsumexp, bool is_causal, float scale) -> (Tensor, Tensor, Tensor)">
    attention_backward;

OP_DEFINE(attention){{
    .doc =
        R"(scaled_dot_product_attention without dropout for equal leading dimensions, with the logarithm of each query's
sum of exponentials, which the gradient needs.)",
    .infer =
        [](const Tensor& q, const Tensor&, const Tensor& v, const Tensor&, bool, double) {
          return std::array<Meta, 2>{laid_out_as(q, v.size(-1), q.dtype()),
                                     Meta{Ints(q.sizes()).slice(0, size_t(q.dim() - 1)), computing_dtype(q)}};
        },
    .kernel = {[](Tensor& out, Tensor& sums, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                  bool is_causal, double scale) {
                 cpu::attention(out, sums, with_near_elements(q), with_near_elements(k), with_near_elements(v),
                                whole_mask(mask, q, k), is_causal, scale);
               },
               nullptr},
    .saves = "query, key, value, mask, output, logsumexp",
    .vjp =
        [](const Tensors& g, const Tensors& results, const Tensor& q, const Tensor& k, const Tensor& v,
           const Tensor& mask, bool is_causal, double scale) {
          if (grad_enabled())
            return gradients_again({q, k, v, mask}, {g[0]}, [&](Tensors x) {
              const DType t = computing_dtype(q);
              const auto widened = [t](const Tensor& each) { return each.dtype() == t ? each : cast(each, t); };
              return std::array{
                  cast(attend(widened(x[0]), widened(x[1]), widened(x[2]), mask, 0, is_causal, scale), q.dtype())};
            });
          const auto [dq, dk, dv] = attention_backward(g[0], q, k, v, mask, results[0], results[1], is_causal, scale);
          return Grads{dq, dk, dv};
        },
}};

OP_DEFINE(attention_backward){{
    .doc = R"(The gradients of _attention: of query, key and value.)",
    .infer =
        [](const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&, const Tensor&,
           const Tensor&, bool, double) {
          const DType t = q.dtype();
          return std::array<Meta, 3>{laid_out_as(q, q.size(-1), t), laid_out_as(k, k.size(-1), t),
                                     laid_out_as(v, v.size(-1), t)};
        },
    .kernel = {[](Tensor& dq, Tensor& dk, Tensor& dv, const Tensor& g, const Tensor& q, const Tensor& k,
                  const Tensor& v, const Tensor& mask, const Tensor& out, const Tensor& sums, bool is_causal,
                  double scale) {
                 cpu::attention_backward(dq, dk, dv, with_near_elements(g), with_near_elements(q),
                                         with_near_elements(k), with_near_elements(v), whole_mask(mask, q, k),
                                         with_near_elements(out), sums, is_causal, scale);
               },
               nullptr},
}};

}  // namespace

OP_DEFINE(scaled_dot_product_attention){{
    .doc =
        R"(``softmax(query @ key.T * scale + mask) @ value``: for each query, the mean of the values weighted by how well
their keys fit.

Shape: query (..., l, e), key (..., s, e), value (..., s, v), mask broadcastable to (..., l, s); the result is (..., l, v).
A bool mask is True where a key takes part, a floating one is added. ``is_causal`` lets query i see keys up to i. ``scale`` is
1 / sqrt(e) unless given. ``enable_gqa`` lets groups of query heads (dimension -3) share a head of key and value. A query
that sees no key gives zeros. ``dropout_p`` always applies: pass 0 in evaluation.
Errors: RuntimeError where shapes or dtypes do not fit, or for a mask together with ``is_causal``.
On the CPU the scores are never in memory as a whole, unless there is dropout or the mask needs a gradient.
Source: Dao, Fu, Ermon, Rudra and Re 2022, FlashAttention, arXiv:2205.14135.)",
    .composite =
        [](const Tensor& q, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p,
           bool is_causal, OptDouble scale, bool enable_gqa) {
          check(q.dtype() == key.dtype() && q.dtype() == value.dtype(),
                "Expected query, key, and value to have the same dtype, but got query.dtype: ", name_of(q.dtype()),
                " key.dtype: ", name_of(key.dtype()), " and value.dtype: ", name_of(value.dtype()), " instead.");
          check(q.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
                "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ", q.dim(),
                ", key.dim: ", key.dim(), " and value.dim: ", value.dim(), " instead.");
          check(!mask.defined() || !is_causal, "Explicit attn_mask should not be set when is_causal=True");
          check(!mask.defined() || mask.dtype() == kBool || mask.dtype() == q.dtype() || mask.dtype() == kFloat32,
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
                mask.defined() ? name_of(mask.dtype()) : "", " and query.dtype: ", name_of(q.dtype()), " instead.");
          const bool grouped = enable_gqa && q.dim() >= 3;
          const Tensor k = grouped ? repeat_heads(key, q.size(-3)) : key;
          const Tensor v = grouped ? repeat_heads(value, q.size(-3)) : value;
          const double factor = scale.value_or(1 / std::sqrt(double(q.size(-1))));
          if (has_kernel(q, k, v, mask, dropout_p)) return attention(q, k, v, mask, is_causal, factor)[0];
          if (q.itemsize() == 2) {  // sums, weights and all in float
            const Tensor added = mask.defined() && mask.dtype() != kBool ? cast(mask, kFloat32) : mask;
            return cast(
                attend(cast(q, kFloat32), cast(k, kFloat32), cast(v, kFloat32), added, dropout_p, is_causal, factor),
                q.dtype());
          }
          return attend(q, k, v, mask, dropout_p, is_causal, factor);
        },
    .autocast = Autocast::half,
}};

}  // namespace rush
