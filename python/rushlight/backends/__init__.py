"""What computes on each device, and the switches that PyTorch code sets. A switch is remembered; where there is nothing
for it to switch, it changes nothing."""

from . import cpu


class _Flags:
    """Settings of a backend that is not there: `is_available()` is False, attributes can be set and read."""

    def __init__(self, name, **settings):
        self.__name__ = f"rushlight.backends.{name}"
        self.__dict__.update(settings)

    def is_available(self):
        return False

    is_built = is_available

    def version(self):
        return None

    def flags(self, **settings):
        """A context manager in which these settings hold."""
        return _Setting(self, settings)


class _Setting:
    def __init__(self, flags, settings):
        self.flags, self.settings = flags, settings

    def __enter__(self):
        self.before = {name: getattr(self.flags, name, None) for name in self.settings}
        self.flags.__dict__.update(self.settings)

    def __exit__(self, *_):
        self.flags.__dict__.update(self.before)


cudnn = _Flags(
    "cudnn",
    enabled=True,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
)
mkldnn = _Flags("mkldnn", enabled=False, deterministic=False, allow_tf32=False)
mkl = _Flags("mkl")
mps = _Flags("mps")
openmp = _Flags("openmp")
quantized = _Flags("quantized", engine="none", supported_engines=["none"])
opt_einsum = _Flags("opt_einsum", enabled=False, strategy=None)
cuda = _Flags("cuda", cufft_plan_cache=None)
cuda.matmul = _Flags(
    "cuda.matmul",
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)
cuda.flash_sdp_enabled = cuda.mem_efficient_sdp_enabled = cuda.cudnn_sdp_enabled = lambda: False
cuda.math_sdp_enabled = lambda: True

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized"]
