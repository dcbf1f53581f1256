// The extension module rushlight._C.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "module_base.h"
#include "python.h"
#include "rushlight/allocator.h"
#include "rushlight/parallel.h"
#include "rushlight/print.h"

namespace nb = nanobind;

NB_MODULE(_C, m) {
  using namespace rush;
  namespace py = rush::python;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      py::set_python_error();
    } catch (const py::PythonError&) {
    }
  });
  try {
    py::add_types(m.ptr());
    py::add_tensor_type(m.ptr());
    py::add_autograd(m.ptr());
    py::add_conversions(m.ptr());
    py::add_operators(m.ptr());
    py::add_random(m.ptr());
    py::add_optim(m.ptr());
    py::add_serialize(m.ptr());
    py::add_tools(m.ptr());
    py::add_cuda(m.ptr());
    py::add_autocast(m.ptr());
    py::add_profiler(m.ptr());
    m.attr("ModuleBase") = nb::steal(py::need(py::make_module_base()));
    m.attr("OutOfMemoryError") = nb::steal(py::need(PyErr_NewExceptionWithDoc(
        "rushlight.OutOfMemoryError", "Raised when a device has no memory left.", PyExc_RuntimeError, nullptr)));
    m.attr("AcceleratorError") = nb::steal(py::need(PyErr_NewExceptionWithDoc(
        "rushlight.AcceleratorError", "Raised for what a device found wrong.", PyExc_RuntimeError, nullptr)));
    m.attr("_DeviceAssertError") = nb::steal(py::need(PyErr_NewExceptionWithDoc(
        "rushlight.cuda.DeviceAssertError", "Raised for an index that a kernel found out of range.",
        nb::make_tuple(m.attr("AcceleratorError"), nb::handle(PyExc_IndexError)).ptr(), nullptr)));
    m.attr("_LinAlgError") = nb::steal(py::need(PyErr_NewExceptionWithDoc(
        "rushlight.linalg.LinAlgError", "Raised when a matrix makes a computation impossible.", PyExc_RuntimeError,
        nullptr)));
  } catch (const py::PythonError&) {
    throw nb::python_error();
  }
  m.def("get_num_threads", &num_threads, "Threads that operators use.");
  m.def("set_num_threads", &set_num_threads, nb::arg("n"), "Sets the number of threads that operators use.");
  m.def(
      "_print_options",
      [] {
        const PrintOptions& o = print_options();
        return std::tuple(o.precision, o.threshold, o.edgeitems, o.linewidth, o.sci_mode);
      },
      "Precision, threshold, edgeitems, linewidth and sci_mode of printing.");
  m.def(
      "_set_print_options",
      [](int precision, int64_t threshold, int64_t edgeitems, int64_t linewidth, std::optional<bool> sci_mode) {
        print_options() = {precision, threshold, edgeitems, linewidth, sci_mode};
      },
      nb::arg("precision"), nb::arg("threshold"), nb::arg("edgeitems"), nb::arg("linewidth"),
      nb::arg("sci_mode").none(), "Sets what _print_options() tells.");
  m.def("_memory_allocated", &cpu_memory_allocated, "Bytes of CPU memory in use by tensors.");
  m.def("_max_memory_allocated", &cpu_max_memory_allocated, "The most bytes of CPU memory in use so far.");
  m.def("_memory_cached", &cpu_memory_cached, "Bytes of CPU memory kept to be used again.");
  m.def("_reset_peak_memory", &cpu_reset_peak, "Starts _max_memory_allocated() over.");
  m.def("_kept_bytes", &kept_bytes, "Bytes that storages keep of what kernels made of them.");
  m.def("_kept_limit", &kept_limit, "The most that they keep.");
  m.def("_set_kept_limit", &set_kept_limit, "Sets that.");
  m.def("_empty_cache", &cpu_empty_cache, "Gives cached CPU memory back to the system.");
}
