// Autocast's state for Python: what rushlight.amp's contexts set.
#include "rushlight/autocast.h"

#include <nanobind/nanobind.h>

#include "python.h"

namespace nb = nanobind;

namespace rush::python {

namespace {

DeviceType type_from(const nb::object& device) {
  if (device.is_none()) return DeviceType::CUDA;
  return device_from(device.ptr()).type;
}

}  // namespace

void add_autocast(PyObject* module) {
  auto m = nb::borrow<nb::module_>(module);
  const auto device = nb::arg("device_type").none() = nb::none();
  m.def(
      "is_autocast_enabled", [](const nb::object& d) { return autocast::is_enabled(type_from(d)); }, device,
      "Whether autocast is on for a device type, cuda if none is given.");
  m.def(
      "set_autocast_enabled", [](const nb::object& d, bool on) { autocast::set_enabled(type_from(d), on); },
      nb::arg("device_type"), nb::arg("enabled"), "Turns autocast on or off for a device type.");
  m.def("set_autocast_enabled", [](bool on) { autocast::set_enabled(DeviceType::CUDA, on); });
  m.def(
      "get_autocast_dtype", [](const nb::object& d) { return nb::steal(wrap(autocast::dtype(type_from(d)))); },
      nb::arg("device_type"), "The type that autocast casts to.");
  m.def(
      "set_autocast_dtype",
      [](const nb::object& d, const nb::object& t) {
        check<TypeError>(is_dtype(t.ptr()), "set_autocast_dtype(): argument 'dtype' must be torch.dtype, not ",
                         Py_TYPE(t.ptr())->tp_name);
        autocast::set_dtype(type_from(d), dtype_from(t.ptr()));
      },
      nb::arg("device_type"), nb::arg("dtype"), "Sets the type that autocast casts to.");
  m.def("is_autocast_cache_enabled", &autocast::is_cache_enabled,
        "Whether casts of parameters are kept until the outermost scope ends.");
  m.def("set_autocast_cache_enabled", &autocast::set_cache_enabled, nb::arg("enabled"));
  m.def("clear_autocast_cache", &autocast::clear_cache, "Forgets the casts of parameters that were kept.");
  m.def("autocast_increment_nesting", &autocast::increment_nesting, "Opens a scope; returns how many are open.");
  m.def("autocast_decrement_nesting", &autocast::decrement_nesting, "Closes a scope; returns how many are open.");
}

}  // namespace rush::python
