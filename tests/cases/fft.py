"""Fourier transforms, against NumPy's."""

import numpy as np

from tests.harness import Case, T, V

SINGLE = ("float32", "int64", "complex64")
DOUBLE = ("float64", "complex128")


def real_only(dtypes):
    return tuple(d for d in dtypes if not d.startswith("complex"))


def transform(name, ref, inputs, *, real=False, to="complex", norms=True, suffix="", **options):
    kwargs = [{}, {"norm": "ortho"}, {"norm": "forward"}] if norms else [{}]
    for dtypes, gives in ((SINGLE, {"complex": "complex64"}), (DOUBLE, {"complex": "complex128"})):
        single = dtypes is SINGLE
        gives = gives.get(to, "float32" if single else "float64")
        id_ = "-".join(filter(None, (suffix, "single" if single else "double")))
        taken = real_only(dtypes) if real else dtypes
        Case(name, ref=ref, inputs=inputs, kwargs=kwargs, dtypes=taken, gives=gives, suffix=id_, **options)
        options.pop("raises", None)


LINES = [(7,), (8,), ((3, 5), 4), ((2, 3), 8, 0), ((0, 3), 3), ((1, 3), None, 0)]
# What takes other ways through the kernel: powers of two, one line and several, neighbours in memory, long lines that
# are split, odd ones, small and large prime factors.
LENGTHS = [
    (64,),
    (1024,),
    (3, 960),
    ((16, 40), None, 0),
    ((40, 17),),
    ((19, 2, 12), None, 0),
    (2, 67),
    (1021,),
    (1500,),
]
WRONG = [
    (((3, 4), 0), RuntimeError, "Invalid number of data points (0) specified"),
    (((3, 4), None, 2), IndexError, "out of range"),
    (((),), IndexError, "no dimensions"),
    (((3, 4), None, -1, V("half")), RuntimeError, 'Invalid normalization mode: "half"'),
    ((T((3, 4), dtype="float16"),), NotImplementedError, "Unsupported dtype Half"),
]
for name, kind in (
    ("fft", {}),
    ("ifft", {}),
    ("rfft", {"real": True}),
    ("ihfft", {"real": True}),
    ("irfft", {"to": "real"}),
    ("hfft", {"to": "real"}),
):
    ref, wrong = getattr(np.fft, name), list(WRONG)
    if kind.get("real"):
        wrong.append(((T((3,), dtype="complex64"),), TypeError, "expects a real input tensor, but got ComplexFloat"))
    if kind.get("to"):
        wrong.append((((3, 1),), RuntimeError, "Invalid number of data points (0)"))
    lines = LINES[:-1] if kind.get("to") else LINES  # of one element nothing is left
    transform(f"fft_{name}", ref, lines, raises=wrong, **kind)
    transform(f"fft_{name}", ref, LENGTHS, norms=False, suffix="lengths", tol=10, **kind)


def last_axes(f):
    """NumPy wants to be told which axes sizes are for; in PyTorch they are the last ones."""
    return lambda x, s=None, dim=None, norm=None: f(x, s, range(-len(s), 0) if s and dim is None else dim, norm)


def hfftn(x, s=None, dim=None, norm=None):
    dims = list(range(x.ndim))[-len(s) if s else 0 :] if dim is None else list(dim)
    if len(dims) > 1:
        x = np.fft.fftn(x, s and s[:-1], dims[:-1], norm)
    return np.fft.hfft(x, s and s[-1], dims[-1], norm)


def ihfftn(x, s=None, dim=None, norm=None):
    dims = list(range(x.ndim))[-len(s) if s else 0 :] if dim is None else list(dim)
    x = np.fft.ihfft(x, s and s[-1], dims[-1], norm)
    return np.fft.ifftn(x, s and s[:-1], dims[:-1], norm) if len(dims) > 1 else x


PLANES = [(3, 4), (2, 3, 2), ((2, 3), V((4, 2))), ((2, 3, 2), None, V((0, 1))), ((2, 3, 2), V((3, 4)), V((2, 0)))]
REGIONS = [*PLANES, ((2, 3, 2), None, V((1,))), ((4, 3), V((6,)))]
TWICE = [
    (((3, 4), None, V((0, -2))), RuntimeError, "FFT dims must be unique"),
    (((3, 4), V((2,)), V((0, 1))), RuntimeError, "same length"),
    (((3, 4), V((2, 0)), V((0, 1))), RuntimeError, "Invalid number of data points (0) specified"),
]
NONE = [(((3, 4), None, V(())), RuntimeError, "must transform at least one axis")]
MANY = [(((3, 4), V((2, 2, 2))), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions")]
for name, ref, kind in (
    ("fft", last_axes(np.fft.fftn), {}),
    ("ifft", last_axes(np.fft.ifftn), {}),
    ("rfft", last_axes(np.fft.rfftn), {"real": True}),
    ("ihfft", ihfftn, {"real": True}),
    ("irfft", last_axes(np.fft.irfftn), {"to": "real"}),
    ("hfft", hfftn, {"to": "real"}),
):
    plane = lambda x, s=None, dim=(-2, -1), norm=None, f=ref: f(x, s, dim, norm)  # noqa: E731
    transform(f"fft_{name}2", plane, PLANES, raises=TWICE + NONE * bool(kind), **kind)
    transform(f"fft_{name}n", ref, REGIONS, raises=TWICE + MANY + NONE * bool(kind), **kind)
Case("fft_fftn", ref=lambda x, s=None, dim=None: x, inputs=[((2, 3), None, V(())), ((),)], dtypes=DOUBLE, suffix="none")

for name in ("fftfreq", "rfftfreq"):
    Case(f"fft_{name}", ref=getattr(np.fft, name), inputs=[(V(8),), (V(7), 0.5), (V(1),)],
         dtypes=("float32",), gives=None, layouts=False, meta=False,
         raises=[((V(-1),), RuntimeError, "-1")])  # fmt: skip
for name in ("fftshift", "ifftshift"):
    Case(f"fft_{name}", ref=getattr(np.fft, name), inputs=[(7,), (3, 4), ((3, 4), 1), ((2, 3, 5), V((0, -1)))],
         dtypes=("float32", "float64", "int64", "bool", "complex64"), gives="same",
         raises=[(((3, 4), 2), IndexError, "out of range")])  # fmt: skip


def stft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=None, return_complex=None, align_to_window=None):  # fmt: skip
    hop, length = hop_length or n_fft // 4, win_length or n_fft
    left = (n_fft - length) // 2
    if center or align_to_window:
        before, after = (n_fft // 2,) * 2 if center else (left, n_fft - length - left)
        mode = {"circular": "wrap", "replicate": "edge"}.get(pad_mode, pad_mode) if center else "constant"
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)], mode)
    weights = np.zeros(n_fft, np.result_type(x, 1.0 if window is None else window))
    weights[left : left + length] = 1 if window is None else window
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    windows = np.stack([x[..., i : i + n_fft] * weights for i in starts], -2)
    norm = "ortho" if normalized else None
    whole = np.iscomplexobj(windows) or onesided is False
    spectra = np.swapaxes((np.fft.fft if whole else np.fft.rfft)(windows, norm=norm), -1, -2)
    return spectra if return_complex is not False else np.stack([spectra.real, spectra.imag], -1)


SIGNALS = [((12,), 4), ((2, 9), 5, 2), ((2, 15), 8, 3, 6, (6,)), ((13,), 4, 1, 2)]
OPTIONS = [
    {},
    {"center": False},
    {"pad_mode": V("constant")},
    {"pad_mode": V("replicate")},
    {"pad_mode": V("circular")},
    {"normalized": True, "onesided": False},
]
Case(
    "stft",
    ref=stft,
    inputs=SIGNALS,
    kwargs=[{**o, "return_complex": True} for o in OPTIONS]
    + [{"return_complex": False}, {"return_complex": True, "center": False, "align_to_window": True}],
    dtypes=("float32", "float64"),
    raises=[
        (((12,), 4), RuntimeError, "stft: requires the return_complex parameter"),
        (((12,), 4, 0, None, None, True, V("reflect"), False, None, True), RuntimeError, "hop_length > 0"),
        (((12,), 4, 1, 5, None, True, V("reflect"), False, None, True), RuntimeError, "0 < win_length <= n_fft"),
        (((12,), 4, 1, 4, (3,), True, V("reflect"), False, None, True), RuntimeError, "expected a 1D window"),
        (((3,), 4, 1, None, None, False, V("reflect"), False, None, True), RuntimeError, "expected 0 < n_fft <= 3"),
        (((12,), 4, 1, None, None, True, V("reflect"), False, None, True, True), RuntimeError, "align_to_window"),
        (((1, 1, 12), 4, 1, None, None, True, V("reflect"), False, None, True), RuntimeError, "1D or 2D"),
    ],
)
Case("stft", ref=stft, inputs=SIGNALS, kwargs=OPTIONS[:1] + [{"return_complex": False}],
     dtypes=("complex64", "complex128"), suffix="complex")  # fmt: skip


def istft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None,
          length=None, return_complex=False):  # fmt: skip
    hop, win = hop_length or n_fft // 4, win_length or n_fft
    left = (n_fft - win) // 2
    weights = np.zeros(n_fft, complex)
    weights[left : left + win] = 1 if window is None else window
    spectra, norm = np.swapaxes(x, -1, -2), "ortho" if normalized else None
    windows = np.fft.ifft(spectra, norm=norm) if return_complex else np.fft.irfft(spectra, n_fft, norm=norm)
    windows = windows * weights
    count = windows.shape[-2]
    signal = np.zeros((*x.shape[:-2], n_fft + hop * (count - 1)), complex)
    total = np.zeros(signal.shape[-1], complex)
    for i in range(count):
        signal[..., i * hop : i * hop + n_fft] += windows[..., i, :]
        total[i * hop : i * hop + n_fft] += weights**2
    start = n_fft // 2 if center else 0
    end = signal.shape[-1] - start if length is None else start + length
    result = signal[..., start:end] / total[start:end]
    result = np.pad(result, [(0, 0)] * (x.ndim - 2) + [(0, max(end - signal.shape[-1], 0))])
    return result if return_complex else result.real


SPECTRA = [((3, 5), 4), ((2, 3, 4), 5, 2), ((6, 3), 6, 2)]
Case(
    "istft",
    ref=istft,
    inputs=SPECTRA,
    kwargs=[{}, {"normalized": True}, {"length": 3}, {"length": 20}],
    dtypes=("complex64", "complex128"),
    raises=[
        ((T((3, 5), dtype="float32"), 4), TypeError, "complex-valued"),
        (((3,), 4), RuntimeError, "2 or 3 dimensions"),
        (((3, 0), 4), RuntimeError, "cannot be empty"),
        (((4, 5), 4, 1, 4, None, True, False, True), RuntimeError, "expected 3 frequencies"),
        (((3, 5), 4, 5), RuntimeError, "0 < hop_length <= win_length"),
        (((3, 5), 4, 1, 4, (3,)), RuntimeError, "expected a 1D window"),
        (((3, 5), 4, 4, 4, T((4,), values=[0.0, 1, 1, 1], dtype="float32")), RuntimeError, "window overlap add min"),
        (((3, 5), 4, 1, 4, None, True, False, None, None, True), RuntimeError, "Cannot have onesided output"),
    ],
)
Case("istft", ref=istft, inputs=[((2, 4, 3), 6, 2, 4, T((4,), low=0.5, high=1, dtype="float64"))],
     kwargs=[{}, {"length": 3}], dtypes=("complex64", "complex128"), suffix="window")  # fmt: skip
Case("istft", ref=istft, inputs=[((6, 3), 6, 2), ((5, 4), 5, 1, None, T((5,), low=0.5, high=1))],
     kwargs=[{"return_complex": True}], dtypes=("complex64", "complex128"), suffix="complex")  # fmt: skip
