"""The CPU."""

import os

__all__ = ["get_cpu_capability"]


def get_cpu_capability():
    """The widest instruction set that kernels use here: "AVX512", "AVX2", "SVE", "NEON" or "DEFAULT".

    The environment variable RUSHLIGHT_CPU_CAPABILITY (default, avx2 or avx512), read when rushlight is imported, asks for
    a lower one than the machine has.
    """
    unwanted = {"default": {"AVX512", "AVX2"}, "avx2": {"AVX512"}}.get(os.environ.get("RUSHLIGHT_CPU_CAPABILITY"), ())
    try:
        with open("/proc/cpuinfo") as file:
            flags = set(next((line for line in file if line.startswith(("flags", "Features"))), "").split())
    except OSError:
        return "DEFAULT"
    for name, needs in (
        ("AVX512", {"avx512f", "avx512bw", "avx512vl", "avx512dq"}),
        ("AVX2", {"avx2", "fma"}),
        ("SVE", {"sve"}),
        ("NEON", {"asimd"}),
    ):
        if needs <= flags and name not in unwanted:
            return name
    return "DEFAULT"
