"""These tests need two GPUs, as RUSHLIGHT_SIM_GPUS=2 gives; without them, tests/python/test_cuda.py runs them."""

import rushlight as torch

collect_ignore_glob = [] if torch.cuda.device_count() >= 2 else ["test_*.py"]
