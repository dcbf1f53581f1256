// Convolutions by dtype, over conv.h.
#include "kernels/cpu/convolution.h"

#include "kernels/cpu/pointwise.h"
#include "kernels/cuda/convolution.h"

namespace rush::cpu {

namespace {

Tensor packed(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype && x.is_contiguous()) return x;
  Tensor copied = allocate({x.sizes(), dtype, x.device(), {}});
  copy(copied, x);
  return copied;
}

/// The real or the imaginary part of a complex tensor, a view.
Tensor part(const Tensor& x, int which) {
  Dims strides = x.strides();
  for (int64_t& s : strides) s *= 2;
  Tensor view = alias(x, x.sizes(), strides, 2 * x.storage_offset() + which);
  view.impl()->dtype = real_of(x.dtype());
  return view;
}

using cuda::ConvolutionPass;

/// The memory of the weight whose elements are read at `at`, unless that is a copy.
Weight memory_of(const Tensor& weight, const void* at) {
  return {weight.data_ptr() == at ? weight.storage().get() : nullptr};
}

/// One pass over contiguous memory of T, on the device of the tensors.
template <class T>
void run(Device device, ConvolutionPass pass, const Convolution& conv, T* out, const T* a, const T* b, const T* bias,
         Weight memory = {}) {
  if (!device.is_cpu()) return cuda::convolve(device, pass, conv, dtype_of<T>, out, a, b, bias);
  switch (pass) {
    case ConvolutionPass::forward:
      return conv_forward<T>(conv, a, b, bias, out, memory);
    case ConvolutionPass::data:
      return conv_backward_data<T>(conv, a, b, out, bias);
    case ConvolutionPass::weight:
      return conv_backward_weight<T>(conv, a, b, out);
  }
}

/// Computes out = f(a, b) for a product f of contiguous floating memory that is linear in each.
template <class F>
void bilinear(Tensor& out, const Tensor& a, const Tensor& b, F&& f) {
  const DType t = out.dtype();
  if (is_complex(t)) {
    const DType r = real_of(t);
    Tensor terms[2][2];
    for (int i = 0; i < 2; ++i) {
      const Tensor left = packed(part(a, i), r);
      for (int j = 0; j < 2; ++j) {
        terms[i][j] = allocate({out.sizes(), r, out.device(), {}});
        bilinear(terms[i][j], left, packed(part(b, j), r), f);
      }
    }
    Tensor re = part(out, 0), im = part(out, 1);
    sub(re, terms[0][0], terms[1][1], 1);
    add(im, terms[0][1], terms[1][0], 1);
  } else if (is_integral(t)) {
    Tensor wide = allocate({out.sizes(), kFloat64, out.device(), {}});
    bilinear(wide, packed(a, kFloat64), packed(b, kFloat64), f);
    copy(out, wide);
  } else {
    const Tensor left = packed(a, t), right = packed(b, t);
    for_floating(t, [&]<class T>() { f(out.data<T>(), left.data<T>(), right.data<T>()); });
  }
}

/// Runs f(out, a, b, bias), with the bias added afterwards where the dtype is not one of f's own.
template <class F>
void biased(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias, F&& f) {
  const bool own = out.is_floating_point();
  const Tensor add_in = bias.defined() && own ? packed(bias, out.dtype()) : Tensor();
  bilinear(out, a, b, [&]<class T>(T* o, const T* l, const T* r) {
    f(o, l, r, add_in.defined() ? add_in.template data<T>() : nullptr);
  });
  if (!bias.defined() || own) return;
  Dims sizes(size_t(out.dim()), 1), strides(size_t(out.dim()), 0);
  sizes[1] = bias.sizes()[0];
  strides[1] = bias.strides()[0];
  add(out, out, alias(bias, sizes, strides, bias.storage_offset()), 1);
}

}  // namespace

void convolution(Tensor& y, const Convolution& conv, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  biased(y, x, weight, bias, [&]<class T>(T* out, const T* a, const T* w, const T* bias) {
    run(y.device(), ConvolutionPass::forward, conv, out, a, w, bias, memory_of(weight, w));
  });
}

void convolution(Tensor& y, const Convolution& conv, const Tensor& x, const Tensor& weight,
                 const Epilogue<float>& end) {
  const Tensor image = packed(x, kFloat32), w = packed(weight, kFloat32);
  conv_forward(conv, image.data<float>(), w.data<float>(), end, y.data<float>(), {w.storage().get()});
}

void convolution_transposed(Tensor& x, const Convolution& conv, const Tensor& y, const Tensor& weight,
                            const Tensor& bias) {
  biased(x, y, weight, bias, [&]<class T>(T* out, const T* a, const T* w, const T* bias) {
    run(x.device(), ConvolutionPass::data, conv, out, a, w, bias);
  });
}

void convolution_weight_grad(Tensor& grad_weight, const Convolution& conv, const Tensor& x, const Tensor& grad_y) {
  bilinear(grad_weight, x, grad_y, [&]<class T>(T* out, const T* a, const T* g) {
    run<T>(grad_weight.device(), ConvolutionPass::weight, conv, out, a, g, nullptr);
  });
}

}  // namespace rush::cpu
