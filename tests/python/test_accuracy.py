"""Errors in units in the last place, for every instruction set that this machine and this build have. docs/accuracy.md has those that
tools/ulp.py finds with mpmath; here a smaller sample of each of its rows is held to the row's limit. Then float32 is held against
float64, and float64 against the C library, which may add an ulp of its own.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ALL, POSITIVE, UNIT = (-80.0, 80.0), (1e-30, 1e30), (-1.0, 1.0)
FUNCTIONS = {
    "exp": ALL, "exp2": ALL, "expm1": ALL, "log": POSITIVE, "log2": POSITIVE, "log10": POSITIVE, "log1p": POSITIVE, "sqrt": POSITIVE,
    "rsqrt": POSITIVE, "sin": ALL, "cos": ALL, "tan": ALL, "asin": UNIT, "acos": UNIT, "atan": ALL, "sinh": ALL, "cosh": ALL, "tanh": ALL,
    "asinh": ALL, "acosh": (1.0, 80.0), "atanh": (-0.9999, 0.9999), "erf": (-6.0, 6.0), "erfc": (-6.0, 9.0), "sigmoid": ALL,
    "logit": (1e-6, 1 - 1e-6), "lgamma": (0.1, 80.0), "digamma": (0.1, 80.0), "erfinv": (-0.9999, 0.9999), "i0": (-20.0, 20.0),
    "special.i0e": ALL, "special.i1": (-20.0, 20.0), "special.i1e": ALL, "special.ndtr": (-9.0, 9.0), "special.log_ndtr": (-9.0, 5.0),
    "special.ndtri": (1e-6, 1 - 1e-6), "special.entr": POSITIVE, "special.erfcx": (-5.0, 80.0), "sinc": ALL,
    "special.bessel_j0": (-20.0, 20.0), "special.bessel_j1": (-20.0, 20.0), "special.bessel_y0": (0.1, 20.0),
    "special.bessel_y1": (0.1, 20.0), "special.modified_bessel_k0": (0.1, 20.0), "special.modified_bessel_k1": (0.1, 20.0),
    "special.spherical_bessel_j0": (-20.0, 20.0), "special.airy_ai": (-8.0, 8.0),
}  # fmt: skip
APART = {
    "log1p",
    "rsqrt",
    "sigmoid",
    "lgamma",
    "digamma",
    "erfinv",
}  # float32 has code of its own for the ends of the domain
TWICE = {"lgamma", "digamma"}  # 2 ulp for the gamma functions and pow, 1 for the others


def ulps(got, exact, dtype):
    return float(
        np.max(np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(exact).astype(dtype)).astype(np.float64))
    )


def spread(low, high, dtype):
    """Numbers all over the interval, and as many of every exponent in it."""
    rng = np.random.default_rng(3)
    reach = max(abs(low), abs(high))
    small = reach * 2.0 ** rng.uniform(-60, 0, 4000) * np.where(low < 0, rng.choice([-1, 1], 4000), 1)
    x = np.concatenate([rng.uniform(low, high, 4000), small]).astype(dtype)
    return x[(x >= low) & (x <= high)]


def measure():
    import rushlight as torch

    def function(name):
        return getattr(torch.special, name[8:]) if name.startswith("special.") else getattr(torch, name)

    errors = {}
    for name, interval in FUNCTIONS.items():
        x = spread(*interval, np.float32)
        got = function(name)(torch.from_numpy(x)).numpy()
        errors[name] = ulps(got, function(name)(torch.from_numpy(x.astype(np.float64))).numpy(), np.float32)
        if name in APART:
            ends = torch.tensor([0.0, -0.0, 1.0, -1.0, -2.0, math.inf, -math.inf, math.nan] * 5)  # vectors, and a rest
            got, exact = function(name)(ends).numpy(), function(name)(ends.double()).numpy()
            np.testing.assert_allclose(got, exact, rtol=1e-6, atol=1e-6, err_msg=name)
        if hasattr(math, name) and name != "lgamma":  # Python has one of its own, which is off near its zeros
            x = spread(*interval, np.float64)
            exact = np.array([getattr(math, name)(v) for v in x])
            errors[name + " in float64"] = ulps(function(name)(torch.from_numpy(x)).numpy(), exact, np.float64)
    x, y = spread(1e-3, 1e3, np.float32)[:4000], spread(-12.0, 12.0, np.float32)[:4000]
    exact = np.power(x.astype(np.float64), y.astype(np.float64))
    errors["pow"] = ulps(torch.pow(torch.from_numpy(x), torch.from_numpy(y)).numpy(), exact, np.float32)
    print(json.dumps(errors))


INF, NAN = math.inf, math.nan
ENDS = {
    "exp": {INF: INF, -INF: 0, NAN: NAN},
    "expm1": {INF: INF, -INF: -1, NAN: NAN},
    "log": {0.0: -INF, 1.0: 0, INF: INF, -1.0: NAN, NAN: NAN},
    "log2": {0.0: -INF, 1.0: 0, INF: INF, -1.0: NAN},
    "log10": {0.0: -INF, 1.0: 0, INF: INF, -1.0: NAN},
    "log1p": {-1.0: -INF, 0.0: 0, INF: INF, -2.0: NAN},
    "logit": {0.0: -INF, 0.5: 0, 1.0: INF, -0.5: NAN, 1.5: NAN, NAN: NAN},
    "rsqrt": {0.0: INF, INF: 0, -1.0: NAN},
    "sigmoid": {INF: 1, -INF: 0, NAN: NAN},
    "tanh": {INF: 1, -INF: -1, NAN: NAN},
    "atanh": {1.0: INF, -1.0: -INF, 2.0: NAN},
    "acosh": {1.0: 0, 0.5: NAN, INF: INF},
    "asin": {2.0: NAN, 0.0: 0},
    "acos": {1.0: 0, -2.0: NAN},
    "erf": {INF: 1, -INF: -1, NAN: NAN},
    "erfc": {INF: 0, -INF: 2, NAN: NAN},
    "erfinv": {1.0: INF, -1.0: -INF, 0.0: 0, 2.0: NAN},
    "lgamma": {0.0: INF, -1.0: INF, 1.0: 0, 2.0: 0, INF: INF, NAN: NAN},
    "digamma": {0.0: -INF, -1.0: NAN, INF: INF, NAN: NAN},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ENDS)
def test_ends_of_the_domain(name, dtype):
    import rushlight as torch

    points = list(ENDS[name]) * 20  # vectors, and a rest
    got = getattr(torch, name)(torch.tensor(points, dtype=getattr(torch, dtype))).tolist()
    np.testing.assert_array_equal(got, [ENDS[name][x] for x in points])


# From mpmath at 40 digits: where terms cancel, and at the ends of the domain.
KNOWN = {
    "digamma": {
        -5.683799419861842: -0.22370285701302967,
        -0.5040830082644554: 7.289763902976895e-17,
        -1.5734984731623904: 1.5649788481838454e-16,
        -10.702672540500528: 0.09343459918655543,
        0.3: -3.502524222200133,
        1.4616321449683622: -9.241265521729427e-17,
        -1e-300: 9.999999999999999e299,
    },
    "polygamma": {
        -5.683799419861842: 13.897305335125669,
        -0.5: 8.934802200544679,
        0.3: 12.245364546107732,
        -20.25: 19.69102535100871,
    },
    "special.i0e": {-39.29970363849066: 0.06384322871938884, 700.0: 0.015081295651531358},
    "special.i1e": {31.7: 0.07000990927302608, -250.5: -0.02516835071056926},
    "special.modified_bessel_k0": {12.392298133737793: 1.4633901548640415e-06, 1e-05: 11.628856980944363},
    "special.modified_bessel_k1": {
        5.070274952346046e-195: 1.9722796286171705e194,
        1e-09: 999999999.9999999,
        0.3: 3.055992033457325,
        60.1: 1.2888783877081148e-27,
    },
    "special.airy_ai": {
        -1.5149847802060297: 0.4595452978468182,
        -49.3: -0.16976914248308841,
        -20.7: 0.1780861049168281,
        5.5: 3.368531190859981e-05,
    },
}


@pytest.mark.parametrize("name", KNOWN)
def test_float64_of_special_functions(name):
    """To one ulp; next to the zeros of a function to one of its larger values."""
    import rushlight as torch

    x = torch.tensor(list(KNOWN[name]), dtype=torch.float64)
    if name == "polygamma":
        got = torch.polygamma(1, x)
    else:
        got = getattr(torch.special if "." in name else torch, name.split(".")[-1])(x)
    exact = np.array(list(KNOWN[name].values()))
    floor = {"digamma": 0.5, "special.airy_ai": 0.1}.get(name, 0)
    limit = np.spacing(np.maximum(np.abs(exact), floor)) * (2 if name == "polygamma" else 1)
    assert (np.abs(got.numpy() - exact) <= limit).all(), (got.tolist(), exact.tolist())


def test_float64_against_mpmath():
    """Every row of docs/accuracy.md's tables, on fewer inputs than tools/ulp.py takes, but the same ones next to zeros and poles."""
    spec = importlib.util.spec_from_file_location("ulp", Path(__file__).parents[2] / "tools" / "ulp.py")
    ulp = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ulp)
    errors = {row.name: ulp.worst(row, np.float64, 200) for row in ulp.ROWS}
    assert not {row.name: errors[row.name] for row in ulp.ROWS if errors[row.name][0] > row.limit}


# Near zeros of lgamma, mostly the doubles next to them, where |Gamma(x)| - 1 is in the last digits: from mpmath at 60 digits.
LGAMMA_NEAR_ZEROS = {
    -2.4570247382208006: 5.619192358950097e-17,
    -2.7476826467274127: 1.733509244024501e-16,
    -3.143580888349982: -1.558138945425717e-14,
    -3.2473157126235916: -0.6110941211262924,
    -3.955294284858598: -4.14382750757705e-16,
    -4.039361839740537: -5.664578074060335e-15,
    -4.991544640560046: -1.8932551335800043e-13,
    -5.0082181683225935: 5.4188509265538106e-15,
    -5.008218168322596: -3.2328403948209854e-13,
    -9.000002755714815: 2.612892115408854e-09,
    -15.999999999999956: 0.07347591648857112,
}


def test_lgamma_near_its_zeros():
    import rushlight as torch

    got = torch.lgamma(torch.tensor(list(LGAMMA_NEAR_ZEROS), dtype=torch.float64)).numpy()
    assert ulps(got, np.array(list(LGAMMA_NEAR_ZEROS.values())), np.float64) <= 2


def test_polygamma_at_its_poles():
    import rushlight as torch

    poles = torch.tensor([0.0, -1.0, -7.0])
    assert torch.polygamma(1, poles).tolist() == torch.polygamma(3, poles).tolist() == [INF] * 3


@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_errors_are_within_their_bounds(capability):
    env = os.environ | {"RUSHLIGHT_CPU_CAPABILITY": capability, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    errors = json.loads(done.stdout)
    assert len(errors) > len(FUNCTIONS)
    for name, error in errors.items():
        of = name.removesuffix(" in float64")
        limit = (2 if of in TWICE or of == "pow" else 1) + (of != name)
        assert error <= limit, f"{name}: {error} ulp"


def test_an_unknown_instruction_set_is_named_and_not_used():
    """A build for one instruction set has no choice, and does not look."""
    env = os.environ | {"RUSHLIGHT_CPU_CAPABILITY": "avx1024"}
    done = subprocess.run([sys.executable, "-c", "import rushlight"], env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert not done.stderr or "must be default, avx2 or avx512, got 'avx1024'" in done.stderr


if __name__ == "__main__":
    measure()
