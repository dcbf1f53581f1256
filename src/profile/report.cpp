// What is made of events: averages by name, and the table.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "rushlight/profiler.h"

namespace rush {

namespace {

template <class... Args>
std::string formatted(const char* format, Args... args) {
  char out[64];
  std::snprintf(out, sizeof out, format, args...);
  return out;
}

/// Characters, not bytes, of UTF-8.
size_t width(std::string_view s) {
  return size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
std::string_view first_characters(std::string_view s, size_t n) {
  size_t i = 0;
  for (; i < s.size(); ++i)
    if ((s[i] & 0xC0) != 0x80 && n-- == 0) break;
  return s.substr(0, i);
}
std::string shortened(const std::string& s, size_t most) {
  return width(s) + 3 < most ? s : std::string(first_characters(s, most < 3 ? 0 : most - 3)) + "...";
}
std::string last_characters(const std::string& s, size_t most) {
  const size_t n = width(s);
  if (n <= most) return s;
  const size_t skip = n - most + (most > 3 ? 3 : 0);
  return (most > 3 ? "..." : "") + s.substr(first_characters(s, skip).size());
}

std::string time_in(double us, const std::string& unit) {
  if (unit == "s") return formatted("%.3fs", us / 1e6);
  if (unit == "ms") return formatted("%.3fms", us / 1e3);
  return unit == "us" ? formatted("%.3fus", us) : format_time(us);
}
std::string share(double part, double whole) { return whole == 0 ? "NaN" : formatted("%.2f%%", part * 100 / whole); }

double field(const ProfilerStats& s, std::string_view name) {
  if (name == "cpu_time") return s.cpu_time();
  if (name == "cpu_time_total") return s.cpu_time_total;
  if (name == "self_cpu_time_total") return s.self_cpu_time_total;
  if (name == "cpu_memory_usage") return double(s.cpu_memory_usage);
  if (name == "self_cpu_memory_usage") return double(s.self_cpu_memory_usage);
  if (name == "device_memory_usage") return double(s.device_memory_usage);
  if (name == "self_device_memory_usage") return double(s.self_device_memory_usage);
  if (name == "count") return double(s.count);
  raise<ValueError>("the profiler's table can't be sorted by '", name,
                    "'; it can by cpu_time, cpu_time_total, self_cpu_time_total, cpu_memory_usage, "
                    "self_cpu_memory_usage, device_memory_usage, self_device_memory_usage and count");
}

struct Column {
  std::string header;
  size_t width = 12;
  bool left = false;
};

std::string line(const std::vector<Column>& columns, const std::vector<std::string>& cells) {
  std::string out;
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t used = width(cells[i]);
    const std::string gap(columns[i].width > used ? columns[i].width - used : 0, ' ');
    out += columns[i].left ? cells[i] + gap : gap + cells[i];
    out += "  ";
  }
  return out + '\n';
}

}  // namespace

std::string format_time(double us) {
  if (us >= 1e6) return formatted("%.3fs", us / 1e6);
  if (us >= 1e3) return formatted("%.3fms", us / 1e3);
  return formatted("%.3fus", us);
}

std::string format_memory(int64_t bytes) {
  const double size = std::abs(double(bytes));
  if (size >= 1 << 30) return formatted("%.2f GB", double(bytes) / (1 << 30));
  if (size >= 1 << 20) return formatted("%.2f MB", double(bytes) / (1 << 20));
  if (size >= 1 << 10) return formatted("%.2f KB", double(bytes) / (1 << 10));
  return text(bytes, " B");
}

std::string ProfilerStats::input_shapes() const {
  std::string out = "[";
  for (const ProfilerInput& input : inputs) {
    out += out.size() > 1 ? ", [" : "[";
    if (input.type != "TensorList" && !input.sizes.empty())
      for (size_t d = 0; d < input.sizes[0].size(); ++d) out += text(d ? ", " : "", input.sizes[0][d]);
    out += ']';
  }
  return out + ']';
}

void ProfilerStats::add(const ProfilerStats& other) {
  count += other.count;
  cpu_time_total += other.cpu_time_total;
  self_cpu_time_total += other.self_cpu_time_total;
  cpu_memory_usage += other.cpu_memory_usage;
  self_cpu_memory_usage += other.self_cpu_memory_usage;
  device_memory_usage += other.device_memory_usage;
  self_device_memory_usage += other.self_device_memory_usage;
}

std::vector<std::shared_ptr<ProfilerStats>> average_events(const std::vector<std::shared_ptr<ProfilerEvent>>& events,
                                                           bool group_by_input_shape, size_t group_by_stack_n) {
  std::vector<std::shared_ptr<ProfilerStats>> out;
  std::map<std::vector<std::string>, ProfilerStats*> groups;
  for (const auto& e : events) {
    std::vector<std::string> group(e->stack.begin(), e->stack.begin() + std::min(group_by_stack_n, e->stack.size()));
    const std::vector<std::string> stack = group;
    if (group_by_input_shape) group.push_back(e->input_shapes());
    group.push_back(e->key);
    ProfilerStats*& sum = groups[group];
    if (sum) {
      sum->add(*e);
    } else {
      out.push_back(std::make_shared<ProfilerStats>(*e));
      sum = out.back().get();
      sum->stack = stack;
      if (!group_by_input_shape) sum->inputs.clear();
    }
  }
  return out;
}

std::vector<std::shared_ptr<ProfilerStats>> Profiler::key_averages(bool group_by_input_shape,
                                                                   size_t group_by_stack_n) const {
  return average_events(events(), group_by_input_shape, group_by_stack_n);
}

std::string Profiler::table(ProfilerTableOptions options) const {
  options.memory = options_.profile_memory;
  return profiler_table(key_averages(), options);
}

std::string profiler_table(const std::vector<std::shared_ptr<ProfilerStats>>& given,
                           const ProfilerTableOptions& options) {
  if (given.empty()) return "";
  std::vector<const ProfilerStats*> rows;
  for (const auto& row : given) rows.push_back(row.get());
  if (!options.sort_by.empty()) {
    std::stable_sort(rows.begin(), rows.end(), [&](const ProfilerStats* a, const ProfilerStats* b) {
      return field(*a, options.sort_by) > field(*b, options.sort_by);
    });
    field(*rows[0], options.sort_by);  // a single row isn't compared
  }

  Column name{"Name", 0}, shapes{"Input Shapes", 0}, source{"Source Location", 0, true};
  bool device = false, has_shapes = false;
  double total = 0;
  for (const ProfilerStats* row : rows) {
    name.width = std::max(name.width, width(row->key) + 4);
    has_shapes |= !row->inputs.empty();
    shapes.width = std::max(shapes.width, row->input_shapes().size() + 4);
    for (const std::string& entry : row->stack) source.width = std::max(source.width, width(entry) + 4);
    device |= row->self_device_memory_usage > 0;
    total += row->self_cpu_time_total;
  }
  const bool has_stack = source.width > 0;
  name.width = std::min(name.width, options.max_name_width);
  shapes.width = std::min(shapes.width, options.max_shapes_width);
  source.width = std::min(source.width, options.max_source_width);
  std::vector<Column> columns{name, {"Self CPU %"}, {"Self CPU"}, {"CPU total %"}, {"CPU total"}, {"CPU time avg"}};
  if (options.memory) {
    columns.push_back({"CPU Mem"});
    columns.push_back({"Self CPU Mem"});
    if (device) {
      columns.push_back({"CUDA Mem"});
      columns.push_back({"Self CUDA Mem"});
    }
  }
  columns.push_back({"# of Calls"});
  if (has_shapes) columns.push_back(shapes);
  if (has_stack) columns.push_back(source);

  std::string rule, out;
  std::vector<std::string> headers;
  for (const Column& c : columns) {
    rule += std::string(c.width, '-') + "  ";
    headers.push_back(c.header);
  }
  const std::string bar = std::string(rule.size() - 2, '=') + '\n';
  if (!options.header.empty()) out += bar + options.header + '\n';
  if (options.top_level_only) out += bar + "This report only display top-level ops statistics\n";
  out += rule + '\n' + line(columns, headers) + rule + '\n';

  int64_t left = options.row_limit;
  for (const ProfilerStats* row : rows) {
    if (left == 0) break;
    if (options.top_level_only && !row->top_level) continue;
    --left;
    std::vector<std::string> cells{
        shortened(row->key, options.max_name_width),          share(row->self_cpu_time_total, total),
        time_in(row->self_cpu_time_total, options.time_unit), share(row->cpu_time_total, total),
        time_in(row->cpu_time_total, options.time_unit),      time_in(row->cpu_time(), options.time_unit)};
    if (options.memory) {
      cells.push_back(format_memory(row->cpu_memory_usage));
      cells.push_back(format_memory(row->self_cpu_memory_usage));
      if (device) {
        cells.push_back(format_memory(row->device_memory_usage));
        cells.push_back(format_memory(row->self_device_memory_usage));
      }
    }
    cells.push_back(std::to_string(row->count));
    if (has_shapes) cells.push_back(row->input_shapes().substr(0, shapes.width));
    if (has_stack) cells.push_back(row->stack.empty() ? "" : last_characters(row->stack[0], source.width));
    out += line(columns, cells);
    if (has_stack) {
      std::vector<std::string> empty(columns.size());
      for (size_t i = 1; i < row->stack.size(); ++i) {
        empty.back() = last_characters(row->stack[i], source.width);
        out += line(columns, empty);
      }
      empty.back().clear();
      out += line(columns, empty);
    }
  }
  return out + rule + "\nSelf CPU time total: " + time_in(total, options.time_unit) + '\n';
}

}  // namespace rush
