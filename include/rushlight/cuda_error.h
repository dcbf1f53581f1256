// What is thrown for errors of a GPU, real or simulated.
#pragma once
#include "rushlight/error.h"

namespace rush::cuda {

/// What the driver or the simulator reports. torch.AcceleratorError in Python.
struct AcceleratorError : Error {
  using Error::Error;
};
/// What a kernel found wrong: an index out of range. In Python torch.AcceleratorError and IndexError. The kernel has
/// left out that element; the device is as good as before.
struct DeviceAssertError : IndexError {
  using IndexError::IndexError;
};

}  // namespace rush::cuda
