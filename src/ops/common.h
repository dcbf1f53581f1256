// What many operators' blocks share: the usual answers to "what does the result look like".
#pragma once
#include "rushlight/autograd.h"
#include "rushlight/ops.h"

namespace rush {

/// Contiguous, or with the strides of `x` where those are dense: elementwise results keep their input's layout.
inline Meta like(const Tensor& x, DType dtype) {
  if (x.is_contiguous() || !is_dense(x.sizes(), x.strides())) return {x.sizes(), dtype};
  return {x.sizes(), dtype, {}, x.strides()};
}
inline Meta like(const Tensor& x) { return like(x, x.dtype()); }

/// .infer of an operator on one tensor with a result of the same shape and dtype.
inline constexpr auto like_input = [](const Tensor& x) { return like(x); };

/// The layout for a pointwise result of `sizes`: that of the first dense operand which has these sizes.
template <class... T>
Meta pointwise_meta(DType dtype, const T&... operands) {
  Meta meta;
  meta.dtype = dtype;
  const Tensor* list[] = {&operands...};
  bool same = true;
  for (const Tensor* t : list) same &= Ints(t->sizes()) == Ints(list[0]->sizes());
  meta.sizes = list[0]->sizes();
  if (!same)
    for (const Tensor* t : list) meta.sizes = broadcast(meta.sizes, t->sizes());
  for (const Tensor* t : list) {
    if (Ints(t->sizes()) != Ints(meta.sizes)) continue;
    if (!t->is_contiguous() && is_dense(t->sizes(), t->strides())) meta.strides = t->strides();
    break;
  }
  return meta;
}

/// The common dtype of the operands by PyTorch's promotion.
template <class... T>
DType promote_tensors(const T&... operands) {
  if (((operands.dtype() == std::get<0>(std::tie(operands...)).dtype() && !operands.impl()->wrapped_number) && ...))
    return std::get<0>(std::tie(operands...)).dtype();
  Promotion p;
  (p(operands), ...);
  return p.dtype();
}
/// An integral dtype becomes the default float type: what sin, div and mean give for integers.
inline DType to_floating(DType t) { return is_integral(t) ? default_dtype() : t; }

/// .infer of arithmetic on two tensors: broadcast shape, promoted dtype.
inline constexpr auto binary_meta = [](const Tensor& a, const Tensor& b) {
  return pointwise_meta(promote_tensors(a, b), a, b);
};
inline constexpr auto compare_meta = [](const Tensor& a, const Tensor& b) { return pointwise_meta(kBool, a, b); };
/// .infer of a function that gives floats for integers.
inline constexpr auto floating_meta = [](const Tensor& x) { return like(x, to_floating(x.dtype())); };

inline constexpr auto floating_binary = [](const Tensor& a, const Tensor& b) {
  const DType t = promote_tensors(a, b);
  return pointwise_meta(to_floating(t), a, b);
};
/// .infer of a function of real numbers, integers included.
inline constexpr auto like_real = [](const Tensor& x) {
  check<NotImplementedError>(!x.is_complex(), "not implemented for '", scalar_name(x.dtype()), "': needs a real dtype");
  return like(x);
};
/// .infer of a function of floating-point or complex numbers.
inline constexpr auto floating_only = [](const Tensor& x) {
  check<NotImplementedError>(!is_integral(x.dtype()), "not implemented for '", scalar_name(x.dtype()),
                             "': needs a floating-point dtype");
  return like(x);
};
/// .infer of a gradient operator: like the gradient and what it is the gradient of.
inline constexpr auto backward_meta = [](const Tensor& g, const Tensor& x) {
  return pointwise_meta(promote_tensors(g, x), x, g);
};

/// The conjugate, and so x itself for a real x: what products need in their gradients.
inline Tensor conjugate(const Tensor& x) { return x.is_complex() ? conj_physical(x) : x; }

inline constexpr double kPi = 3.141592653589793, kLn2 = 0.6931471805599453, kLn10 = 2.302585092994046,
                        kTwoOverRootPi = 1.1283791670955126, kSeluAlpha = 1.6732632423543772,
                        kSeluScale = 1.0507009873554805;

}  // namespace rush
