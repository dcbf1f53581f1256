"""Special functions: torch.special.x is the operator `special_x`, or the operator of that name."""

from . import _C

_OTHER_NAMES = {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "sigmoid",
    "expm1": "expm1", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "i0": "i0", "log1p": "log1p",
    "log_softmax": "log_softmax", "logit": "logit", "logsumexp": "logsumexp", "multigammaln": "mvlgamma",
    "polygamma": "polygamma", "psi": "digamma", "round": "round", "sinc": "sinc", "softmax": "softmax",
    "xlogy": "xlogy",
}  # fmt: skip


def __getattr__(name):
    value = None
    if not name.startswith("_"):
        value = getattr(_C, f"special_{name}", None) or getattr(_C, _OTHER_NAMES.get(name, ""), None)
    if value is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    registered = (name.removeprefix("special_") for name in _C._operator_names if name.startswith("special_"))
    return sorted({*registered, *_OTHER_NAMES})
