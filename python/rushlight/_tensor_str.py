"""Options for the text of tensors; the text itself is made in C++."""

from __future__ import annotations

import contextlib

from . import _C

_NAMES = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
_UNLIMITED = 2**63 - 1
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": _UNLIMITED, "edgeitems": 3, "linewidth": 80},
}


def get_printoptions():
    """The options in use, as a dict with the argument names of :func:`set_printoptions`."""
    options = dict(zip(_NAMES, _C._print_options(), strict=True))
    if options["threshold"] == _UNLIMITED:
        options["threshold"] = float("inf")
    return options


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Sets how tensors are printed. What is None stays as it is, but for `sci_mode`.

    Args:
        precision: digits after the point (4 at first).
        threshold: tensors with more elements are summarised (1000 at first).
        edgeitems: how many elements a summary shows at each end of a dimension (3 at first).
        linewidth: characters of a line (80 at first).
        profile: "default", "short" or "full": a set of the above, which other arguments may change.
        sci_mode: whether to write numbers as 1.0000e+00; None lets the values decide.
    """
    options = get_printoptions()
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be 'default', 'short' or 'full', got {profile!r}")
        options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({name: value for name, value in given.items() if value is not None})
    options["threshold"] = min(options["threshold"], _UNLIMITED)
    options["sci_mode"] = sci_mode
    _C._set_print_options(**{name: value if name == "sci_mode" else int(value) for name, value in options.items()})


@contextlib.contextmanager
def printoptions(**options):
    """:func:`set_printoptions` for the time of a ``with`` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)
