// The profiler from C++; names, tables and traces are compared in tests/python/test_profiler.py.
#include "rushlight/profiler.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "rushlight/autocast.h"
#include "rushlight/ops.h"

namespace rush {
namespace {

size_t count_of(const Profiler& profiler, std::string_view key) {
  for (const auto& row : profiler.key_averages())
    if (row->key == key) return row->count;
  return 0;
}

TEST(Profiler, RecordsCallsNodesAndScopes) {
  Profiler profiler({.record_shapes = true, .profile_memory = true});
  Tensor kept;
  profiler.start();
  {
    const RecordFunction scope("step");
    const Tensor x = ones({2, 3}).requires_grad_();
    sum(x * x).backward();
    in_place(add, kept = zeros({4}), Tensor(1));
  }
  profiler.stop();
  exp(kept);  // no longer recorded
  EXPECT_EQ(count_of(profiler, "aten::exp"), 0u);
  EXPECT_EQ(count_of(profiler, "step"), 1u);
  EXPECT_EQ(count_of(profiler, "aten::add_"), 2u);  // the other adds the two gradients of x
  EXPECT_EQ(count_of(profiler, "MulBackward0"), 1u);
  int64_t bytes = 0;
  for (const auto& e : profiler.events()) {
    bytes += e->self_cpu_memory_usage;
    EXPECT_LE(e->start, e->end);
    EXPECT_EQ(e->parent == nullptr, e->key == "step" || e->key == "[memory]");
  }
  EXPECT_EQ(bytes, 16);
  bool shapes = false;
  for (const auto& row : profiler.key_averages(true))
    shapes |= row->key == "aten::mul" && row->input_shapes() == "[[2, 3], [2, 3]]";
  EXPECT_TRUE(shapes);
  const std::string table = profiler.table({.sort_by = "self_cpu_time_total", .row_limit = 3});
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 8);
  EXPECT_THROW(profiler.table({.sort_by = "speed"}), ValueError);
}

TEST(Profiler, EachThreadHasItsOwn) {
  Profiler here;
  here.start();
  EXPECT_THROW(Profiler().start(), Error);
  EXPECT_THROW(here.events(), Error);
  std::thread([&] {
    EXPECT_THROW(here.stop(), Error);
    EXPECT_THROW(here.start(), Error);
    Profiler there;
    there.start();
    exp(ones({2}));
    there.stop();
    EXPECT_EQ(count_of(there, "aten::exp"), 1u);
  }).join();
  here.stop();
  EXPECT_EQ(count_of(here, "aten::exp"), 0u);
  EXPECT_THROW(here.stop(), Error);
}

TEST(Profiler, EndsWithItsObject) {
  {
    Profiler profiler;
    profiler.start();
  }
  EXPECT_FALSE(profiler::current || modes().autocast);
  const RecordFunction nothing("nobody looks");
  Profiler again;
  again.start();
  again.stop();
  again.start();
  neg(ones({1}));
  again.stop();
  EXPECT_EQ(count_of(again, "aten::neg"), 1u);
}

TEST(Profiler, AutocastsCallIsOneEvent) {
  const Tensor x = ones({4, 4}, kBFloat16);
  Profiler profiler;
  profiler.start();
  {
    const AutocastGuard guard(DeviceType::CPU);
    mm(x, x);
    mm(ones({4, 4}), x);
  }
  profiler.stop();
  EXPECT_EQ(count_of(profiler, "aten::_to_copy"), 1u);
  EXPECT_EQ(count_of(profiler, "aten::mm"), 3u);  // the second one with its cast inside
}

TEST(Profiler, MemoryOfStoragesThatChange) {
  Profiler profiler({.profile_memory = true});
  profiler.start();
  {
    const Tensor t = ones({100});
    t.storage()->resize(4000);
    t.storage()->resize(40);
  }
  profiler.stop();
  int64_t bytes = 0;
  for (const auto& e : profiler.events()) bytes += e->self_cpu_memory_usage;
  EXPECT_EQ(bytes, 0);
}

TEST(Profiler, Text) {
  EXPECT_EQ(format_time(0.5), "0.500us");
  EXPECT_EQ(format_time(1500), "1.500ms");
  EXPECT_EQ(format_time(2.25e6), "2.250s");
  EXPECT_EQ(format_memory(-3), "-3 B");
  EXPECT_EQ(format_memory(2560), "2.50 KB");
  EXPECT_EQ(format_memory(-(3 << 20)), "-3.00 MB");
  EXPECT_EQ(format_memory(int64_t(5) << 30), "5.00 GB");
}

TEST(Profiler, Trace) {
  Profiler profiler;
  EXPECT_NE(profiler.chrome_trace().find("\"traceEvents\": []"), std::string::npos);
  profiler.start();
  { const RecordFunction scope("say \"hi\""); }
  profiler.stop();
  const std::string path = testing::TempDir() + "rushlight_trace.json";
  profiler.export_chrome_trace(path);
  std::stringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), profiler.chrome_trace());
  EXPECT_NE(written.str().find(R"("name": "say \"hi\"")"), std::string::npos);
  EXPECT_THROW(profiler.export_chrome_trace("/no/such/folder/trace.json"), Error);
}

}  // namespace
}  // namespace rush
