// The text of tensors. A first pass over the elements that will be shown decides how numbers are written, a second
// writes them.
#include "rushlight/print.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <ostream>

#include "rushlight/autograd.h"

namespace rush {

namespace {

std::string printed(const char* format, int precision, double v) {
  if (std::isnan(v)) return "nan";
  std::array<char, 400> text;
  const int n = std::snprintf(text.data(), text.size(), format, precision, v);
  if (size_t(n) < text.size()) return std::string(text.data(), size_t(n));
  std::string longer(size_t(n), ' ');
  std::snprintf(longer.data(), size_t(n) + 1, format, precision, v);
  return longer;
}

/// How the numbers of a tensor (or the real or imaginary parts) are written: all in the same way, padded to a width.
class Column {
 public:
  Column(bool floating, const PrintOptions& options) : options_(options), floating_(floating) {}

  /// Looks at a value, in two rounds: the style must be known before widths are.
  void measure(double v) {
    if (v == 0 || !std::isfinite(v)) return;
    const double size = std::abs(v);
    low_ = std::min(low_, size);
    high_ = std::max(high_, size);
    if (v != std::ceil(v)) whole_ = false;
  }
  void settle() {
    if (!floating_ || high_ == 0) return;
    scientific_ = options_.sci_mode.value_or(high_ / low_ > 1000 || high_ > 1e8 || low_ < 1e-4);
  }
  void widen(double v) {
    if (v != 0 && std::isfinite(v)) width_ = std::max(width_, plain(v).size());
  }
  void widen(int64_t v) { width_ = std::max(width_, plain(v).size()); }
  void widen(bool v) { width_ = std::max(width_, plain(v).size()); }

  template <class T>
  std::string write(T v) const {
    std::string text = plain(v);
    if (text.size() < width_) text.insert(0, width_ - text.size(), ' ');
    return text;
  }
  int64_t width() const { return int64_t(width_); }

 private:
  std::string plain(bool v) const { return v ? "True" : "False"; }
  std::string plain(int64_t v) const { return std::to_string(v); }
  std::string plain(double v) const {
    if (scientific_) return printed("%.*e", options_.precision, v);
    if (whole_) return printed("%.*f", 0, v) + (std::isfinite(v) ? "." : "");
    return printed("%.*f", options_.precision, v);
  }

  const PrintOptions& options_;
  bool floating_, whole_ = true, scientific_ = false;
  double low_ = std::numeric_limits<double>::infinity(), high_ = 0;
  size_t width_ = 1;
};

/// Writes the elements of one tensor with brackets and line breaks.
class Body {
 public:
  Body(const Tensor& t, const PrintOptions& options)
      : t_(t),
        options_(options),
        summarise_(t.numel() > options.threshold),
        columns_{Column(!is_integral(t.dtype()), options), Column(true, options)} {
    if (t.dtype() == kBool) {
      each(0, 0, [&](int64_t at) { columns_[0].widen(t.data<bool>()[at]); });
    } else if (is_integral(t.dtype())) {
      each(0, 0, [&](int64_t at) { columns_[0].widen(integer(at)); });
    } else {
      for (int part = 0; part < parts(); ++part) {
        each(0, 0, [&](int64_t at) { columns_[part].measure(number(at, part)); });
        columns_[part].settle();
        each(0, 0, [&](int64_t at) { columns_[part].widen(number(at, part)); });
      }
    }
  }

  std::string text(int64_t indent) const { return text(0, 0, indent); }

 private:
  int parts() const { return t_.is_complex() ? 2 : 1; }
  int64_t size(int64_t d) const { return t_.sizes()[d]; }
  bool shortened(int64_t d) const { return summarise_ && size(d) > 2 * options_.edgeitems; }

  /// Calls f with the place of each element that is shown.
  template <class F>
  void each(int64_t d, int64_t at, F&& f) const {
    if (d == t_.dim()) return f(at);
    for (int64_t i = 0; i < size(d); ++i) {
      if (shortened(d) && i == options_.edgeitems) i = size(d) - options_.edgeitems;
      if (i < size(d)) each(d + 1, at + i * t_.strides()[d], f);
    }
  }

  int64_t integer(int64_t at) const {
    return for_all(t_.dtype(), [&]<class T>() -> int64_t {
      if constexpr (std::is_integral_v<T>)
        return int64_t(t_.data<T>()[at]);
      else
        return 0;
    });
  }
  double number(int64_t at, int part) const {
    return for_all(t_.dtype(), [&]<class T>() -> double {
      const T v = t_.data<T>()[at];
      if constexpr (is_complex(dtype_of<T>))
        return part ? double(v.imag()) : double(v.real());
      else
        return double(v);
    });
  }

  std::string element(int64_t at) const {
    if (t_.dtype() == kBool) return columns_[0].write(t_.data<bool>()[at]);
    if (is_integral(t_.dtype())) return columns_[0].write(integer(at));
    std::string text = columns_[0].write(number(at, 0));
    if (t_.is_complex()) {
      std::string imag = columns_[1].write(number(at, 1)) + "j";
      imag.erase(0, imag.find_first_not_of(' '));
      text += (imag[0] == '-' ? "" : "+") + imag;
    }
    return text;
  }

  std::string text(int64_t d, int64_t at, int64_t indent) const {
    if (d == t_.dim()) return element(at);
    const bool last = d + 1 == t_.dim();
    std::vector<std::string> items;
    for (int64_t i = 0; i < size(d); ++i) {
      if (shortened(d) && i == options_.edgeitems) {
        items.push_back(last && options_.edgeitems ? " ..." : "...");
        i = size(d) - options_.edgeitems;
        if (i == size(d)) break;
      }
      items.push_back(text(d + 1, at + i * t_.strides()[d], indent + 1));
    }
    const int64_t length = element_width() + 2;
    const size_t per_line = last ? size_t(std::max<int64_t>(1, (options_.linewidth - indent) / length)) : 1;
    const std::string gap =
        "," + std::string(size_t(last ? 1 : t_.dim() - d - 1), '\n') + std::string(size_t(indent + 1), ' ');
    std::string out = "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out += i % per_line ? ", " : gap;
      out += items[i];
    }
    return out + "]";
  }
  int64_t element_width() const { return columns_[0].width() + (t_.is_complex() ? columns_[1].width() + 1 : 0); }

  const Tensor& t_;
  const PrintOptions& options_;
  bool summarise_;
  std::array<Column, 2> columns_;
};

std::string tuple(Ints sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

/// The name of the node that made a tensor, if one did.
std::string node_name(const Tensor& t) {
  try {
    const Ref<Node> node = t.grad_fn();
    return node ? node->name() : "";
  } catch (const Error&) {  // an in-place change that could not be recorded has cut it off; printing is no use of it
    return "Invalid";
  }
}

}  // namespace

PrintOptions PrintOptions::profile(std::string_view name) {
  PrintOptions options;
  if (name == "short") {
    options.precision = 2;
    options.edgeitems = 2;
  } else if (name == "full") {
    options.threshold = std::numeric_limits<int64_t>::max();
  } else {
    check<ValueError>(name == "default", "profile must be 'default', 'short' or 'full', got '", name, "'");
  }
  return options;
}

PrintOptions& print_options() {
  static PrintOptions options;
  return options;
}

std::string to_string(const Tensor& t, std::string_view prefix) {
  if (!t.defined()) return "[ Tensor (undefined) ]";
  const PrintOptions& options = print_options();
  const int64_t indent = int64_t(prefix.size());
  const DType dtype = t.dtype();
  const bool shown = !t.is_meta() && t.numel() > 0;
  // Elements tell these dtypes; where there are none, only the default dtype goes without saying.
  const bool evident = dtype == default_dtype() ||
                       (shown && (dtype == kInt64 || dtype == kBool || dtype == complex_of(default_dtype())));

  std::vector<std::string> notes;
  if (!t.is_cpu()) notes.push_back(rush::text("device='", t.device(), "'"));
  if (t.is_meta() || (!shown && t.dim() != 1) || (shown && options.edgeitems == 0))
    notes.push_back("size=" + tuple(t.sizes()));
  if (!evident) notes.push_back(rush::text("dtype=torch.", name_of(dtype)));
  if (const std::string node = node_name(t); !node.empty())
    notes.push_back("grad_fn=<" + node + ">");
  else if (t.requires_grad())
    notes.push_back("requires_grad=True");

  std::string out(prefix);
  const Tensor here = t.is_cuda() ? t.detach().cpu() : t;
  out += t.is_meta() ? "..." : shown ? Body(here, options).text(indent) : "[]";
  const size_t line_break = out.rfind('\n');
  int64_t line = int64_t(out.size()) + 2 - (line_break == out.npos ? 0 : int64_t(line_break) + 1);
  for (const std::string& note : notes) {
    const int64_t length = int64_t(note.size());
    if (line + length + 2 > options.linewidth) {
      out += ",\n" + std::string(size_t(indent), ' ');
      line = indent + length;
    } else {
      out += ", ";
      line += length + 2;
    }
    out += note;
  }
  return out + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << to_string(t); }

}  // namespace rush
