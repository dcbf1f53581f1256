"""Where the time goes: `profile` records operators, backward passes and named scopes, in steps of a schedule.

::

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        with record_function("inference"):
            model(x)
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
"""

from rushlight._C import _DeviceType as DeviceType
from rushlight.autograd.profiler import record_function

from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
