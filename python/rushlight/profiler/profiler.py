"""`profile` with its schedule and its handlers."""

import enum
import json
import os
import socket
import time
import warnings

from rushlight.autograd import profiler as recording

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """Whose work is recorded."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What a profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities():
    """The set of activities that can be recorded: the CPU's."""
    return {ProfilerActivity.CPU}


def kineto_available():
    """Whether `profile` can record: always."""
    return True


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A schedule for `profile`: after ``skip_first`` steps, cycles of ``wait`` idle, ``warmup`` and ``active`` steps.

    Args:
        wait, warmup, active (int): steps of each kind in a cycle; what ``active`` ones record is one trace.
        repeat (int): how many cycles; 0 for no end.
        skip_first (int): steps before the first cycle.
        skip_first_wait (int): if not 0, the first cycle has no ``wait`` steps.

    Raises AssertionError for negative numbers and for ``active=0``.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        cycle, place = divmod(step - skip_first + (wait if skip_first_wait else 0), length)
        if (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """For ``on_trace_ready``: writes each trace to ``<dir_name>/<worker_name>.<time>.pt.trace.json``.

    Args:
        dir_name (str): a folder, made if needed; RuntimeError if it can't be.
        worker_name (str, optional): unique among those that write there; by default host and process.
        use_gzip (bool): compress the files.
    """

    def handle(prof):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


class profile:
    """Records what this thread runs inside of the context, all of it or in the steps that a schedule chooses.

    Args:
        activities (iterable of ProfilerActivity, optional): CPU. With CUDA it warns that GPUs' work is not timed.
        schedule (callable, optional): from the number of a step to its `ProfilerAction`, such as `schedule` makes.
            By default every step is recorded.
        on_trace_ready (callable, optional): called with this object when a trace is complete, which is after a step
            with ``RECORD_AND_SAVE`` and at the end.
        record_shapes (bool): record the sizes of arguments.
        profile_memory (bool): count the bytes of tensors.
        with_stack (bool): record the lines of Python that called.
        with_flops (bool): not available.
        with_modules (bool): without effect.
        acc_events (bool): `events` and `key_averages` have the events of all cycles, not only of the last.

    Raises RuntimeError if a profiler already runs on this thread, NotImplementedError for what is not available.
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
    ):
        self.activities = supported_activities() if activities is None else set(activities)
        for activity in self.activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"Expected ProfilerActivity, got {type(activity)}")
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if execution_trace_observer is not None:
            raise NotImplementedError("profile: execution_trace_observer is not available")
        self.profiler = recording.profile(
            use_cpu=ProfilerActivity.CPU in self.activities,
            use_device="cuda" if ProfilerActivity.CUDA in self.activities else None,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            acc_events=acc_events,
        )
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step_event = None
        self._metadata = {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Begins with the first step."""
        self._change(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self):
        """Ends the last step; a trace that was being recorded is complete."""
        self._end_step()
        self._change(self.current_action, None)

    def step(self):
        """Says that the next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._change(before, self.current_action)
        self._begin_step()

    def start_trace(self):
        """Begins to record, whatever the schedule says."""
        self.profiler.entered = False
        self.profiler.__enter__()

    def stop_trace(self):
        """Ends recording."""
        self.profiler.__exit__(None, None, None)

    def _begin_step(self):
        if self.record_steps:
            self._step_event = recording.record_function(f"ProfilerStep#{self.step_num}")
            self._step_event.__enter__()

    def _end_step(self):
        if self._step_event is not None:
            self._step_event.__exit__(None, None, None)
            self._step_event = None

    def _change(self, before, now):
        """From one step's action to the next one's; None is the end."""
        saves = before is ProfilerAction.RECORD_AND_SAVE or (before is ProfilerAction.RECORD and now is None)
        records = now in _RECORDING
        if (before in _RECORDING and not records) or (before is ProfilerAction.RECORD_AND_SAVE):
            if not saves:
                warnings.warn(f"Incorrect schedule: RECORD followed by {now.name}", stacklevel=3)
            self.stop_trace()
            if saves and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.WARMUP and now is ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if records and before is not ProfilerAction.RECORD:
            self.start_trace()

    def events(self):
        """The `EventList` of the last trace."""
        return self.profiler.function_events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """Events of the same name as one, to be shown with ``.table(sort_by=...)``.

        Args:
            group_by_input_shape (bool): only if the sizes of their arguments are the same too (``record_shapes``).
            group_by_stack_n (int): only if the innermost n lines that called are the same too (``with_stack``).
        """
        return self.profiler.key_averages(group_by_input_shape, group_by_stack_n)

    def add_metadata(self, key, value):
        """Puts a string into the trace file."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key, value):
        """Puts a value, given as JSON, into the trace file."""
        self._metadata[key] = value

    preset_metadata_json = add_metadata_json

    def export_chrome_trace(self, path):
        """Writes the last trace for Perfetto or chrome://tracing; compressed if ``path`` ends with ``.gz``."""
        metadata = ", ".join(f"{json.dumps(key)}: {value}" for key, value in self._metadata.items())
        self.profiler.export_chrome_trace(path, metadata)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes stacks for flame graphs. The profiler must be made ``with_stack``."""
        self.profiler.export_stacks(path, metric)
