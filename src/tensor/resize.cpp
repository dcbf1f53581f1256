// Changing a tensor's own size.
#include "tensor/sizes.h"

namespace rush {

void resize(Tensor& t, Ints sizes) {
  TensorImpl& impl = *t.impl();
  int64_t bytes;
  check(!__builtin_mul_overflow(impl.offset + count_elements(sizes), t.itemsize(), &bytes),
        "Storage size calculation overflowed with sizes=", sizes, " and offset ", impl.offset);
  if (bytes > impl.storage->bytes()) impl.storage->resize(bytes);
  impl.sizes = sizes;
  impl.strides = contiguous_strides(sizes);
  impl.refresh();
}

}  // namespace rush
