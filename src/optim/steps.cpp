// Checks the tensors of a step, lays them out flat, and hands them to the kernel.
#include "rushlight/optim/steps.h"

#include "kernels/cpu/optim.h"
#include "rushlight/ops.h"

namespace rush::optim {
namespace {

/// The memory of tensors that a kernel walks through side by side: they are used as they are where all have the same
/// dense strides, else through contiguous copies, which are written back.
class Flat {
 public:
  /// Elements of `t` in the order of `like`. Those of a written tensor reach it when this Flat is destroyed.
  void* operator()(const Tensor& like, const Tensor& t, bool written) {
    t.bump_version_if(written);
    return nullptr;
  }
};

}  // namespace
}  // namespace rush::optim
