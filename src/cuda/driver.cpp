// The driver's GPUs.
#include "cuda/driver.h"

namespace rush::cuda {

int driver_devices() { return 0; }

Runtime* start_driver() {
  raise("no CUDA device is available: neither is RUSHLIGHT_SIM_GPUS set nor is there support for the driver yet");
}

}  // namespace rush::cuda
