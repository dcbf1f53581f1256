// The driver's GPUs; see driver.cpp.
#pragma once
#include "cuda/runtime.h"

namespace rush::cuda {

/// Devices that the driver would have, without starting it.
int driver_devices();
/// Throws Error saying what is missing if there is no driver or no device.
Runtime* start_driver();

}  // namespace rush::cuda
