// Changing a tensor's own size.
#include "rushlight/tensor.h"

namespace rush {

void resize(Tensor& t, Ints sizes) {
  TensorImpl& impl = *t.impl();
  const int64_t bytes = (impl.offset + product(sizes)) * t.itemsize();
  if (bytes > impl.storage->bytes()) impl.storage->resize(bytes);
  impl.sizes = sizes;
  impl.strides = contiguous_strides(sizes);
  impl.refresh();
}

}  // namespace rush
