// Every kernel of the library, compiled by NVRTC as a GPU would have it, without one. It takes minutes, so it runs only
// where RUSHLIGHT_TEST_KERNELS names architectures: RUSHLIGHT_TEST_KERNELS=75,87,90 rushlight_tests
// --gtest_filter='CudaKernels.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include "cuda/libraries.h"
#include "cuda/nvrtc.h"
#include "kernels/cuda/launch.h"

namespace rush::cuda {
namespace {

std::vector<const Kernel*> every_kernel() {
  std::vector<const Kernel*> kernels;
  for (const Registered* r = all_kernels; r; r = r->next) kernels.push_back(&r->kernel);
  return kernels;
}

TEST(CudaKernels, HaveNamesOfTheirOwn) {
  std::vector<std::string> names;
  for (const Kernel* k : every_kernel()) names.push_back(k->name);
  EXPECT_GT(names.size(), 400u);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const std::string& n : names) {
    EXPECT_TRUE(n.starts_with("rush::cuda::") && n.ends_with('>')) << n;
    EXPECT_EQ(n.find("anonymous"), n.npos) << n;
  }
}

TEST(CudaKernels, CompileWithoutWarningsAndSpills) {
  const char* wanted = std::getenv("RUSHLIGHT_TEST_KERNELS");
  if (!wanted) GTEST_SKIP() << "set RUSHLIGHT_TEST_KERNELS=75,87,90 to compile every kernel";
  if (!find_library("libnvrtc").handle()) GTEST_SKIP() << "there is no libnvrtc";
  const std::vector<const Kernel*> kernels = every_kernel();
  constexpr size_t batch = 32;
  std::istringstream list(wanted);
  for (std::string architecture; std::getline(list, architecture, ',');) {
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t at; (at = next.fetch_add(batch)) < kernels.size();) {
        const std::span part = std::span(kernels).subspan(at, std::min(batch, kernels.size() - at));
        try {
          EXPECT_EQ(compiler_messages(part, std::stoi(architecture)), "") << "sm_" << architecture;
        } catch (const Error& e) {
          ADD_FAILURE() << e.what();
        }
      }
    };
    std::thread other(work);
    work();
    other.join();
  }
}

}  // namespace
}  // namespace rush::cuda
