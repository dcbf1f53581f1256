// The profiler for Python: recording, events and averages as objects, the table.
#include "rushlight/profiler.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python.h"

namespace nb = nanobind;

namespace rush::python {

namespace {

/// "file.py(12): function" for each Python frame, innermost first.
std::vector<std::string> python_stack() {
  const AcquireGil gil;
  std::vector<std::string> out;
  PyFrameObject* const innermost = PyThreadState_GetFrame(PyThreadState_Get());
  for (Object frame(reinterpret_cast<PyObject*>(innermost)); frame;) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    const Object code(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
    out.push_back(text(text_of(c->co_filename), "(", PyFrame_GetLineNumber(f), "): ", text_of(c->co_name)));
    frame = Object(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return out;
}

nb::list list_of(const Dims& sizes) {
  nb::list out;
  for (const int64_t n : sizes) out.append(n);
  return out;
}

/// The arguments' sizes; of a list of tensors those of each if `structured`, else none.
nb::list shapes_of(const ProfilerStats& s, bool structured) {
  nb::list out;
  for (const ProfilerInput& input : s.inputs) {
    if (input.type == "TensorList") {
      nb::list each;
      if (structured)
        for (const Dims& sizes : input.sizes) each.append(list_of(sizes));
      out.append(each);
    } else {
      out.append(input.sizes.empty() ? nb::list() : list_of(input.sizes[0]));
    }
  }
  return out;
}

struct Interval {
  double start, end;
};

/// Parent and children are kept alive by the event they were asked of.
std::shared_ptr<ProfilerEvent> beside(const std::shared_ptr<ProfilerEvent>& self, const ProfilerEvent* other) {
  return {self, const_cast<ProfilerEvent*>(other)};
}

PyObject* record_begin(PyObject*, PyObject* name) {
  return guarded([&] {
    check<TypeError>(PyUnicode_Check(name), "record_function: the name must be str, not ", Py_TYPE(name)->tp_name);
    return PyLong_FromUnsignedLongLong(profiler::current ? RecordFunction::begin(text_of(name)) : 0);
  });
}
PyObject* record_end(PyObject*, PyObject* handle) {
  const auto h = PyLong_AsUnsignedLongLong(handle);
  if (PyErr_Occurred()) return nullptr;
  if (h) RecordFunction::end(h);
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {
    {"_record_begin", record_begin, METH_O, "Begins an event; returns a number for _record_end."},
    {"_record_end", record_end, METH_O, "Ends the event of this number."},
    {}};

template <class C>
void add_stats(nb::class_<C>& c) {
  const auto time = [&c](const char* name, const char* shown, double ProfilerStats::*field) {
    c.def_prop_ro(name, [field](const C& s) { return s.*field; });
    c.def_prop_ro(shown, [field](const C& s) { return format_time(s.*field); });
  };
  time("cpu_time_total", "cpu_time_total_str", &ProfilerStats::cpu_time_total);
  time("self_cpu_time_total", "self_cpu_time_total_str", &ProfilerStats::self_cpu_time_total);
  c.def_ro("key", &ProfilerStats::key)
      .def_ro("count", &ProfilerStats::count)
      .def_prop_ro("cpu_time", [](const C& s) { return s.cpu_time(); })
      .def_prop_ro("cpu_time_str", [](const C& s) { return format_time(s.cpu_time()); })
      .def_prop_ro("device_time", [](const C&) { return 0.0; })
      .def_prop_ro("device_time_total", [](const C&) { return 0.0; })
      .def_prop_ro("self_device_time_total", [](const C&) { return 0.0; })
      .def_ro("cpu_memory_usage", &ProfilerStats::cpu_memory_usage)
      .def_ro("self_cpu_memory_usage", &ProfilerStats::self_cpu_memory_usage)
      .def_ro("device_memory_usage", &ProfilerStats::device_memory_usage)
      .def_ro("self_device_memory_usage", &ProfilerStats::self_device_memory_usage)
      .def_ro("scope", &ProfilerStats::scope)
      .def_ro("stack", &ProfilerStats::stack)
      .def_prop_ro("input_shapes", [](const C& s) { return shapes_of(s, false); })
      .def_prop_ro("structured_input_shapes", [](const C& s) { return shapes_of(s, true); })
      .def_prop_ro("is_user_annotation", [](const C& s) { return s.scope == 7; })
      .def_prop_ro("is_async", [](const C&) { return false; })
      .def_prop_ro("is_remote", [](const C&) { return false; })
      .def_prop_ro("node_id", [](const C&) { return -1; })
      .def_prop_ro("device_type", [](const C&) { return DeviceType::CPU; });
}

}  // namespace

void add_profiler(PyObject* module) {
  profiler::capture_stack = python_stack;
  need(PyModule_AddFunctions(module, functions));
  auto m = nb::borrow<nb::module_>(module);
  nb::enum_<DeviceType>(m, "_DeviceType", "Where an event ran.")
      .value("CPU", DeviceType::CPU)
      .value("CUDA", DeviceType::CUDA);
  nb::class_<Interval>(m, "_Interval", "A stretch of time in microseconds.")
      .def_ro("start", &Interval::start)
      .def_ro("end", &Interval::end)
      .def(
          "elapsed_us", [](const Interval& i) { return i.end - i.start; }, "Its length.");
  nb::class_<ProfilerStats> average(m, "_FunctionEventAvg", "What events of one kind add up to.");
  add_stats(average);
  average.def("__init__", [](ProfilerStats* s) { (new (s) ProfilerStats)->count = 0; })
      .def_prop_rw(
          "key", [](const ProfilerStats& s) { return s.key; },
          [](ProfilerStats& s, std::string key) { s.key = std::move(key); })
      .def(
          "add",
          [](nb::object self, const ProfilerStats& other) {
            nb::cast<ProfilerStats&>(self).add(other);
            return self;
          },
          nb::arg("other"), "Adds another's calls, times and bytes.")
      .def("__repr__", [](const ProfilerStats& s) {
        return text("<FunctionEventAvg key=", s.key, " self_cpu_time=", format_time(s.self_cpu_time_total),
                    " cpu_time=", format_time(s.cpu_time()),
                    " input_shapes=", s.inputs.empty() ? std::string() : s.input_shapes(),
                    " cpu_memory_usage=", s.cpu_memory_usage, ">");
      });
  nb::class_<ProfilerEvent, ProfilerStats>(m, "_FunctionEvent", "One call.")
      .def_ro("name", &ProfilerEvent::key)
      .def_prop_ro("trace_name", [](const ProfilerEvent& e) { return e.key; })
      .def_ro("id", &ProfilerEvent::id)
      .def_ro("thread", &ProfilerEvent::thread)
      .def_prop_ro("fwd_thread", [](const ProfilerEvent& e) { return e.scope == 1 ? e.thread : 0; })
      .def_ro("sequence_nr", &ProfilerEvent::sequence)
      .def_prop_ro("time_range",
                   [](const ProfilerEvent& e) {
                     return Interval{e.start, e.end};
                   })
      .def_prop_ro("cpu_parent",
                   [](const std::shared_ptr<ProfilerEvent>& e) {
                     return e->parent ? beside(e, e->parent) : std::shared_ptr<ProfilerEvent>();
                   })
      .def_prop_ro("cpu_children",
                   [](const std::shared_ptr<ProfilerEvent>& e) {
                     std::vector<std::shared_ptr<ProfilerEvent>> out;
                     for (const ProfilerEvent* child : e->children) out.push_back(beside(e, child));
                     return out;
                   })
      .def_prop_ro("kernels", [](const ProfilerEvent&) { return nb::list(); })
      .def("__repr__", [](const ProfilerEvent& e) {
        std::string children;
        for (const ProfilerEvent* child : e.children) children += text(children.empty() ? "" : ", ", child->id);
        return text("<FunctionEvent id=", e.id, " name=", e.key, " cpu_time=", format_time(e.cpu_time_total),
                    " start_us=", e.start, " end_us=", e.end, " cpu_children=[", children, "] thread=", e.thread,
                    " input_shapes=", e.input_shapes(), " cpu_memory_usage=", e.cpu_memory_usage,
                    " seq_nr=", e.sequence, ">");
      });
  nb::class_<Profiler>(m, "_Profiler", "Records this thread from start() to stop().")
      .def(
          "__init__",
          [](Profiler* p, bool shapes, bool memory, bool stack) {
            new (p) Profiler({shapes, memory, stack});
          },
          nb::arg("record_shapes"), nb::arg("profile_memory"), nb::arg("with_stack"))
      .def("start", &Profiler::start, "RuntimeError if a profiler runs on this thread.")
      .def("stop", &Profiler::stop, "RuntimeError if it doesn't run on this thread.")
      .def("events", &Profiler::events, "What was recorded.")
      .def("chrome_trace", &Profiler::chrome_trace, nb::arg("metadata"), "The events in Chrome's trace format.");
  m.def("_average_events", &average_events, nb::arg("events"), nb::arg("group_by_input_shape"),
        nb::arg("group_by_stack_n"), "Events of a kind as one.");
  m.def(
      "_profiler_table",
      [](const std::vector<std::shared_ptr<ProfilerStats>>& rows, const std::string& sort_by, int64_t row_limit,
         size_t source_width, size_t name_width, size_t shapes_width, const std::string& header, bool top_level,
         const std::string& unit, bool memory) {
        return profiler_table(
            rows, {sort_by, row_limit, header, unit, memory, top_level, name_width, shapes_width, source_width});
      },
      "Events or averages as a table.");
}

}  // namespace rush::python
