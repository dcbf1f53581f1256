// A fixture for tests that need GPUs: two simulated ones.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>

class CudaTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("RUSHLIGHT_SIM_GPUS", "2", 0);
    setenv("RUSHLIGHT_SIM_GPU_MEMORY", "256M", 0);
  }
};
