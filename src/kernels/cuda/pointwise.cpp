// Launches of pointwise kernels: dimensions are merged where every operand allows it.
#include "kernels/cuda/pointwise.h"

#include "kernels/cpu/casts.h"

namespace rush::cuda {

void run_pointwise(const PointwiseKernel& kernel, const void* formula, const DType* types, int count,
                   const Tensor* const* tensors) {
  const Tensor& out = *tensors[0];
  const int device = out.device().index;
  Layout<kMaxLanes> layout;
  bool plain = true;
  for (int k = 0; k < count; ++k) {
    const TensorImpl& t = *tensors[k]->impl();
    Lane& lane = layout.lanes[k];
    plain &= t.numel == 1 || (t.contiguous && t.numel == out.numel());
    lane.dtype = t.dtype;
    lane.data = static_cast<char*>(tensors[k]->data_ptr());
    if (!t.device.is_cuda()) {
      cpu::cast_function(types[k], t.dtype)(lane.number, lane.data, 1);
      lane.data = nullptr;
    }
  }
  Dims sizes, strides[kMaxLanes];
  if (plain) {
    sizes = {out.numel()};
    for (int k = 0; k < count; ++k) strides[k] = {tensors[k]->numel() == 1 ? 0 : 1};
  } else {
    Dims full[kMaxLanes];
    for (int k = 0; k < count; ++k)
      full[k] = broadcast_strides(tensors[k]->sizes(), tensors[k]->strides(), out.sizes());
    for (size_t d = 0; d < out.sizes().size(); ++d) {
      const int64_t size = out.sizes()[d];
      if (size == 1) continue;
      bool joins = !sizes.empty();
      for (int k = 0; k < count && joins; ++k) joins = strides[k].back() == full[k][d] * size;
      if (joins)
        sizes[sizes.size() - 1] *= size;
      else
        sizes.push_back(size);
      for (int k = 0; k < count; ++k) {
        if (joins)
          strides[k][sizes.size() - 1] = full[k][d];
        else
          strides[k].push_back(full[k][d]);
      }
    }
  }
  // Dimensions beyond those of a Layout are walked here, a launch for each of their indices.
  const size_t outer = sizes.size() > size_t(kLayoutDims) ? sizes.size() - kLayoutDims : 0;
  int64_t launches = 1, n = 1;
  for (size_t d = 0; d < sizes.size(); ++d) (d < outer ? launches : n) *= sizes[d];
  layout.dims = int64_t(sizes.size() - outer);
  for (size_t d = outer; d < sizes.size(); ++d) {
    layout.sizes[d - outer] = sizes[d];
    for (int k = 0; k < count; ++k) layout.lanes[k].strides[d - outer] = strides[k][d];
  }
  char* base[kMaxLanes];
  for (int k = 0; k < count; ++k) base[k] = layout.lanes[k].data;
  const Argument arguments[] = {{formula, kernel.formula_bytes},
                                {&layout, offsetof(Layout<kMaxLanes>, lanes) + size_t(count) * sizeof(Lane)},
                                {&n, sizeof n}};
  for (int64_t i = 0; i < launches; ++i) {
    int64_t rest = i;
    for (int k = 0; k < count; ++k) layout.lanes[k].data = base[k];
    for (size_t d = outer; d-- > 0; rest /= sizes[d])
      for (int k = 0; k < count; ++k)
        if (base[k]) layout.lanes[k].data += rest % sizes[d] * strides[k][d] * tensors[k]->itemsize();
    detail::launch(kernel.kernel(), device, grid_for(n), arguments);
  }
}

}  // namespace rush::cuda
