// _C._cuda: devices, streams, events and memory, on which rushlight/cuda stands.
#include "rushlight/cuda.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "cuda/cudnn.h"
#include "cuda/libraries.h"
#include "cuda/runtime.h"
#include "cuda/simulator.h"
#include "module_base.h"
#include "python.h"
#include "rushlight/generator.h"

namespace nb = nanobind;

namespace rush::python {
namespace {

using cuda::Event;
using cuda::Stream;

constexpr const char* kStatNames[cuda::MemoryStats::kinds] = {
    "allocation",      "segment",        "active",       "inactive_split",
    "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
    "requested_bytes"};
static_assert(cuda::MemoryStats::inactive_split_bytes == 7 && cuda::MemoryStats::requested_bytes == 8);

nb::dict memory_stats(int device) {
  const cuda::MemoryStats stats = cuda::memory_stats(device);
  nb::dict result;
  constexpr const char* pools[] = {"all", "small_pool", "large_pool"};
  for (size_t kind = 0; kind < stats.values.size(); ++kind)
    for (size_t pool = 0; pool < 3; ++pool) {
      const auto& value = stats.values[kind][pool];
      const std::string prefix = text(kStatNames[kind], ".", pools[pool], ".");
      result[(prefix + "current").c_str()] = value.current;
      result[(prefix + "peak").c_str()] = value.peak;
      result[(prefix + "allocated").c_str()] = value.allocated;
      result[(prefix + "freed").c_str()] = value.freed;
    }
  result["num_alloc_retries"] = stats.alloc_retries;
  result["num_ooms"] = stats.ooms;
  result["num_device_alloc"] = stats.device_allocs;
  result["num_device_free"] = stats.device_frees;
  return result;
}

/// The folders on Python's path, where pip's packages of NVIDIA's libraries are.
std::vector<std::string> path_folders() {
  std::vector<std::string> folders;
  if (!Py_IsInitialized()) return folders;
  const AcquireGil gil;
  PyObject* path = PySys_GetObject("path");
  if (!path || !PyList_Check(path)) return folders;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(path); ++i)
    if (PyObject* folder = PyList_GET_ITEM(path, i); PyUnicode_Check(folder)) folders.emplace_back(text_of(folder));
  return folders;
}

/// Where a library was found, or None, and where it was looked for.
nb::tuple library(const std::string& name) {
  const cuda::Library& found = cuda::find_library(name);
  nb::list tried;
  for (const std::string& place : found.tried) tried.append(place);
  return nb::make_tuple(found.found() ? nb::cast(found.path) : nb::object(nb::none()), tried);
}

}  // namespace

void add_cuda(PyObject* module) {
  cuda::python_folders = path_folders;
  nb::module_ m = nb::borrow<nb::module_>(module).def_submodule("_cuda", "CUDA devices, real or simulated.");
  const auto free_gil = nb::call_guard<nb::gil_scoped_release>();

  m.def("device_count", &cuda::device_count, "Number of devices; starts nothing.");
  m.def("started", &cuda::started, "Whether a device has been used.");
  m.def(
      "start", [] { cuda::runtime(); }, "Opens the driver or the simulator. RuntimeError if there is neither.");
  m.def(
      "simulates", [] { return cuda::simulated_devices() > 0; }, "Whether devices are or would be simulated ones.");
  m.def("current_device", &cuda::current_device, "The current device of this thread.");
  m.def("set_device", &cuda::set_device, nb::arg("device"), "Makes a device current on this thread.");
  m.def("synchronize", &cuda::synchronize, free_gil, nb::arg("device"), "Waits for all work on a device.");
  m.def(
      "can_access_peer", [](int device, int peer) { return cuda::runtime().can_access_peer(device, peer); },
      nb::arg("device"), nb::arg("peer"), "Whether one device reaches the other's memory.");

  using cuda::Properties;
  nb::class_<Properties>(m, "_CudaDeviceProperties", "What a device is.")
      .def_ro("name", &Properties::name)
      .def_ro("uuid", &Properties::uuid)
      .def_ro("major", &Properties::major)
      .def_ro("minor", &Properties::minor)
      .def_ro("total_memory", &Properties::total_memory)
      .def_ro("L2_cache_size", &Properties::l2_cache)
      .def_ro("multi_processor_count", &Properties::multiprocessors)
      .def_ro("warp_size", &Properties::warp_size)
      .def_ro("max_threads_per_block", &Properties::max_threads_per_block)
      .def_ro("max_threads_per_multi_processor", &Properties::max_threads_per_multiprocessor)
      .def_ro("regs_per_multiprocessor", &Properties::registers_per_multiprocessor)
      .def_ro("shared_memory_per_block", &Properties::shared_memory_per_block)
      .def_ro("shared_memory_per_block_optin", &Properties::shared_memory_per_block_optin)
      .def_ro("shared_memory_per_multiprocessor", &Properties::shared_memory_per_multiprocessor)
      .def_ro("is_integrated", &Properties::integrated)
      .def_ro("is_multi_gpu_board", &Properties::multi_gpu_board)
      .def("__repr__", [](const Properties& p) {
        return text("_CudaDeviceProperties(name='", p.name, "', major=", p.major, ", minor=", p.minor,
                    ", total_memory=", p.total_memory >> 20, "MB, multi_processor_count=", p.multiprocessors,
                    ", uuid=", p.uuid, ", L2_cache_size=", p.l2_cache >> 20, "MB)");
      });
  m.def(
      "properties", [](int device) { return cuda::runtime().properties(device); }, nb::arg("device"),
      "The properties of a device.");

  nb::class_<Stream>(m, "Stream", "A queue of work on a device.")
      .def(nb::init<int, int>(), nb::arg("device") = -1, nb::arg("priority") = 0)
      .def(nb::init<const Stream&>(), nb::arg("same"))
      .def_prop_ro("device_index", &Stream::device)
      .def_prop_ro("priority", &Stream::priority)
      .def_prop_ro("stream_id", &Stream::id)
      .def_prop_ro("cuda_stream", [](const Stream& s) { return reinterpret_cast<uintptr_t>(s.handle()); })
      .def("query", &Stream::query)
      .def("synchronize", &Stream::synchronize, free_gil)
      .def("_wait_event", nb::overload_cast<const Event&>(&Stream::wait, nb::const_))
      .def("_wait_stream", nb::overload_cast<const Stream&>(&Stream::wait, nb::const_))
      .def("_same", [](const Stream& a, const Stream& b) { return a == b; });
  m.def("current_stream", &cuda::current_stream, nb::arg("device"), "The current stream of a device.");
  m.def("default_stream", &cuda::default_stream, nb::arg("device"), "The default stream of a device.");
  m.def("stream_from_id", &cuda::stream_from_id, nb::arg("device"), nb::arg("id"), "The stream with a stream_id.");
  m.def("set_stream", &cuda::set_current_stream, nb::arg("stream"), "Makes a stream its device's current one.");
  m.def(
      "record_stream", [](nb::handle t, const Stream& s) { cuda::record_stream(unwrap(t.ptr()), s); },
      nb::arg("tensor"), nb::arg("stream"), "Work on the stream uses the tensor's memory.");

  nb::class_<Event>(m, "Event", "A mark in a stream.")
      .def(nb::init<bool, bool>(), nb::arg("timing") = false, nb::arg("blocking") = false)
      .def("_record", &Event::record)
      .def("query", &Event::query)
      .def("synchronize", &Event::synchronize, free_gil)
      .def("_elapsed", &Event::elapsed)
      .def_prop_ro("_device", &Event::device)
      .def_prop_ro("cuda_event", [](const Event& e) { return reinterpret_cast<uintptr_t>(e.handle()); });

  nb::class_<cuda::Graph>(m, "Graph", "Recorded work.")
      .def(nb::init<>())
      .def("capture_begin", &cuda::Graph::capture_begin, "Records what is put on the current stream from here on.")
      .def("capture_end", &cuda::Graph::capture_end, "Ends recording.")
      .def("replay", &cuda::Graph::replay, "Does what was recorded, on the current stream.")
      .def("reset", &cuda::Graph::reset, "Forgets what was recorded.");
  m.def("is_capturing", &cuda::is_capturing, nb::arg("stream"), "Whether the stream is being recorded.");

  m.def("memory_stats", &memory_stats, nb::arg("device"), "Counters of the caching allocator by name.");
  m.def("reset_peak_memory_stats", &cuda::reset_peak_memory_stats, nb::arg("device"), "Starts the peaks over.");
  m.def("reset_accumulated_memory_stats", &cuda::reset_accumulated_memory_stats, nb::arg("device"),
        "Starts what only grows over.");
  m.def("memory_info", &cuda::memory_info, nb::arg("device"), "Free and total bytes of a device.");
  m.def("set_memory_fraction", &cuda::set_memory_fraction, nb::arg("fraction"), nb::arg("device"),
        "Bounds this process's part of a device's memory.");
  m.def("library", &library, nb::arg("name"), "The path of one of NVIDIA's libraries or None, and the places tried.");
  nb::class_<cuda::CudnnSettings>(m, "CudnnSettings", "The switches of rushlight.backends.cudnn.")
      .def_rw("enabled", &cuda::CudnnSettings::enabled)
      .def_rw("benchmark", &cuda::CudnnSettings::benchmark)
      .def_rw("deterministic", &cuda::CudnnSettings::deterministic)
      .def_rw("allow_tf32", &cuda::CudnnSettings::allow_tf32);
  m.attr("cudnn_settings") = nb::cast(&cuda::cudnn_settings, nb::rv_policy::reference);
  m.def(
      "products_in_tf32", [] { return cuda::products_in_tf32.load(); }, "Whether float32 products may be in TF32.");
  m.def(
      "set_products_in_tf32", [](bool allowed) { cuda::products_in_tf32 = allowed; }, nb::arg("allowed"),
      "Lets float32 products be in TF32.");
  m.def("cudnn_version", &cuda::cudnn_version, "The version of cuDNN, such as 91900; 0 where there is none.");
  m.def("empty_cache", &cuda::empty_cache, free_gil, "Gives unused memory back.");
  m.def(
      "default_generator",
      [](int device) {
        return nb::steal(wrap_generator(default_generator(cuda::indexed({DeviceType::CUDA, device}))));
      },
      nb::arg("device"), "The generator of a device.");
}

}  // namespace rush::python
