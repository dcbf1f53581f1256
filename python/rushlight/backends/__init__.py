"""What computes on each device, and the switches that PyTorch code sets. A switch is remembered; where there is nothing
for it to switch, it changes nothing."""

from rushlight._C import _cuda

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
        self._set(self.settings)

    def __exit__(self, *_):
        self._set(self.before)

    def _set(self, settings):
        for name, value in settings.items():
            setattr(self.flags, name, value)


def _switch(name):
    return property(lambda self: getattr(_cuda.cudnn_settings, name),
                    lambda self, value: setattr(_cuda.cudnn_settings, name, bool(value)))  # fmt: skip


class _Cudnn(_Flags):
    """Convolutions by cuDNN: whether it is used where it is there, whether algorithms are chosen by measuring them, whether
    only those are taken that give the same bits each time, and whether float32 may be multiplied as TensorFloat-32."""

    enabled, benchmark, deterministic, allow_tf32 = map(
        _switch, ("enabled", "benchmark", "deterministic", "allow_tf32")
    )

    def is_available(self):
        """Whether there are a CUDA device and cuDNN. A simulated device has a stand-in."""
        return _cuda.device_count() > 0 and (_cuda.simulates() or _cuda.cudnn_version() > 0)

    def version(self):
        """cuDNN's version, such as 91900; None where it is not there."""
        return _cuda.cudnn_version() or None


cudnn = _Cudnn("cudnn", benchmark_limit=10, fp32_precision="none")
mkldnn = _Flags("mkldnn", enabled=False, deterministic=False, allow_tf32=False)
mkl = _Flags("mkl")
mps = _Flags("mps")
openmp = _Flags("openmp")
quantized = _Flags("quantized", engine="none", supported_engines=["none"])
opt_einsum = _Flags("opt_einsum", enabled=False, strategy=None)
cuda = _Flags("cuda", cufft_plan_cache=None)


class _Matmul(_Flags):
    """Matrix products on CUDA devices: whether float32 ones may be computed in TensorFloat-32."""

    allow_tf32 = property(
        lambda self: _cuda.products_in_tf32(), lambda self, value: _cuda.set_products_in_tf32(bool(value))
    )


cuda.matmul = _Matmul(
    "cuda.matmul",
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)
cuda.flash_sdp_enabled = cuda.mem_efficient_sdp_enabled = cuda.cudnn_sdp_enabled = lambda: False
cuda.math_sdp_enabled = lambda: True

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized"]
