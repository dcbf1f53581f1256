"""The profiler's recording: `profile` for a block of code, `record_function` for a named part of it.

`rushlight.profiler` has the one with schedules and traces.
"""

import contextlib
import gzip
import warnings

from rushlight import _C
from rushlight.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "profile", "record_function"]


class profile:
    """Records the operators, backward nodes and named scopes that this thread runs inside of the context.

    Args:
        enabled (bool): False makes the context do nothing.
        use_device (str, optional): "cuda"; work on GPUs is not timed, which a warning says.
        record_shapes (bool): record the sizes of arguments.
        with_flops (bool): not available.
        profile_memory (bool): count the bytes of tensors.
        with_stack (bool): record the lines of Python that called.
        with_modules (bool): without effect, as in PyTorch's eager mode.
        use_kineto (bool): without effect.
        use_cpu (bool): False is not available.
        acc_events (bool): keep the events of earlier uses of this object.

    Raises RuntimeError if a profiler already runs on this thread, NotImplementedError for what is not available.
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
    ):
        self.enabled = enabled
        if with_flops:
            raise NotImplementedError("profile: with_flops is not available")
        if experimental_config is not None:
            raise NotImplementedError("profile: experimental_config is not available")
        if not use_cpu:
            raise NotImplementedError("profile: only the CPU's work can be recorded, so use_cpu=False is not available")
        if use_device is not None:
            if use_device == "cuda" and not _C._cuda.device_count():
                reason = "CUDA is not available, disabling CUDA profiling"
            else:
                reason = f"Work on {use_device} is not timed, only the calls that launch it"
            warnings.warn(reason, stacklevel=2)
        if with_modules:
            warnings.warn("with_modules is deprecated and has no effect", FutureWarning, stacklevel=2)
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.acc_events = acc_events
        self.entered = False
        self._recorder = _C._Profiler(record_shapes, profile_memory, with_stack)
        self._events = None
        self._earlier = []
        self._hook = None

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        from rushlight.optim.optimizer import register_optimizer_step_pre_hook

        self._recorder.start()
        self.entered = True
        self._events = None
        self._hook = register_optimizer_step_pre_hook(lambda *_: None)  # see optimizer._recorded
        return self

    def __exit__(self, *_):
        if self.enabled:
            self._recorder.stop()
            self._hook.remove()
            if self.acc_events:
                self._earlier += self._recorder.events()
                self._events = EventList(self._earlier, profile_memory=self.profile_memory)
        return False

    def __repr__(self):
        return "<unfinished torch.autograd.profile>" if self._hook is None else repr(self.function_events)

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self._hook is None else str(self.function_events)

    @property
    def function_events(self):
        """The `EventList` of what was recorded. RuntimeError while it is being recorded."""
        if self._events is None:
            self._events = EventList(self._recorder.events(), profile_memory=self.profile_memory)
        return self._events

    def table(self, *args, **kwargs):
        """The events as text; see `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """Events of the same name as one; see `EventList.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self):
        """All events as one."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self):
        """Microseconds in all events, none counted twice."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path, metadata=""):
        """Writes the events for Perfetto or chrome://tracing; compressed if ``path`` ends with ``.gz``."""
        opened = gzip.open(path, "wt") if str(path).endswith(".gz") else open(path, "w")
        with opened as file:
            file.write(self._recorder.chrome_trace(metadata))

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes stacks for flame graphs; see `EventList.export_stacks`. The profiler must be made ``with_stack``."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)


class record_function(contextlib.ContextDecorator):
    """A context, or a decorator, whose time is an event of that name while a profiler runs.

    Args:
        name (str): what the event is called.
        args (str, optional): accepted, without effect.
    """

    def __init__(self, name, args=None):
        self.name = name
        self.args = args

    def __enter__(self):
        self._handle = _C._record_begin(self.name)
        return self

    def __exit__(self, *_):
        _C._record_end(self._handle)

    def _recreate_cm(self):
        return record_function(self.name, self.args)  # a decorated function may call itself


class _Emit:
    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled

    def __enter__(self):
        if self.enabled:
            raise NotImplementedError(f"{type(self).__name__}: ranges for {self._tool} are not available; use profile")
        return self

    def __exit__(self, *_):
        return False


class emit_nvtx(_Emit):
    """Would mark operators as NVTX ranges for NVIDIA's tools. Raises NotImplementedError unless ``enabled`` is False."""

    _tool = "NVIDIA's tools (NVTX)"


class emit_itt(_Emit):
    """Would mark operators as ITT tasks for Intel VTune. Raises NotImplementedError unless ``enabled`` is False."""

    _tool = "Intel VTune (ITT)"
