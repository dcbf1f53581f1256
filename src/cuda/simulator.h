// The simulated GPUs; see simulator.cpp and docs/devices.md.
#pragma once
#include "cuda/runtime.h"

namespace rush::cuda {

/// What RUSHLIGHT_SIM_GPUS asks for. Throws ValueError if it is no number.
int simulated_devices();
Runtime* start_simulator();

}  // namespace rush::cuda
