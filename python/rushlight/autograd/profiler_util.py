"""Lists of the profiler's events."""

from rushlight import _C
from rushlight._C import _FunctionEvent as FunctionEvent
from rushlight._C import _FunctionEventAvg as FunctionEventAvg
from rushlight._C import _Interval as Interval

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class EventList(list):
    """A list of `FunctionEvent` or `FunctionEventAvg` that can be averaged and shown as a table."""

    def __init__(self, *args, use_device=None, profile_memory=False, with_flops=False):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        """Microseconds in all events, none counted twice."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """The events as text.

        Args:
            sort_by (str, optional): a numeric attribute of the events; the largest come first.
            row_limit (int): how many to show; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width (int, optional): where columns are cut.
            header (str, optional): a line above the table.
            top_level_events_only (bool): leave out what ran within another event.
            time_unit (str, optional): "s", "ms" or "us" for all times; by default each in its own.

        Raises AttributeError if the events have no attribute ``sort_by``.
        """
        rows = self
        if sort_by is not None:
            sort_by = sort_by.replace("cuda", "device").replace("xpu", "device")
            rows = sorted(self, key=lambda event: getattr(event, sort_by), reverse=True)
        widths = (max_src_column_width, max_name_column_width, max_shapes_column_width)
        return _C._profiler_table(
            list(rows),
            "",
            row_limit,
            *(2**31 if width is None else width for width in widths),
            header or "",
            top_level_events_only,
            time_unit or "",
            self._profile_memory,
        )

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0):
        """Events of the same name as one `FunctionEventAvg`.

        Args:
            group_by_input_shapes (bool): only if the sizes of their arguments are the same too.
            group_by_stack_n (int): only if the innermost n lines that called them are the same too.
        """
        averages = _C._average_events(self, group_by_input_shapes, group_by_stack_n)
        return EventList(averages, use_device=self._use_device, profile_memory=self._profile_memory)

    def total_average(self):
        """All events as one `FunctionEventAvg` with the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self):
        """What `export_stacks` can count."""
        return ["self_cpu_time_total"]

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes ``outermost;...;innermost microseconds`` for each event, as flame graph tools read it.

        Events have stacks where the profiler was made ``with_stack``. Raises ValueError for an unknown metric.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        plain = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for event in self:
                value = int(getattr(event, metric))
                if event.stack and value > 0:
                    file.write(";".join(line.translate(plain) for line in reversed(event.stack)) + f" {value}\n")
