"""Anomaly mode: backward checks what it computes and says where in forward the trouble began."""

import warnings

from rushlight import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Turns anomaly mode on or off: at once when called, until the end of the block when used in ``with``.

    Args:
        mode (bool): on or off.
        check_nan (bool): whether a NaN in a gradient is an error.
    """

    def __init__(self, mode, check_nan=True):
        self._before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        _C._set_anomaly_enabled(*self._before)


class detect_anomaly:
    """Turns anomaly mode on in a block: an error in backward shows the forward line of the operator that failed.

    Args:
        check_nan (bool): whether a NaN in a gradient is such an error.

    It slows everything down; use it for debugging only.
    """

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self._before = _C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exception):
        _C._set_anomaly_enabled(*self._before)
