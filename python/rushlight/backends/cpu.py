"""The CPU."""

__all__ = ["get_cpu_capability"]


def get_cpu_capability():
    """The widest instruction set that kernels use here: "AVX512", "AVX2", "SVE", "NEON" or "DEFAULT"."""
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
        if needs <= flags:
            return name
    return "DEFAULT"
