"""These tests need GPUs: test_operators one, the others two, as RUSHLIGHT_SIM_GPUS=2 gives; without them,
tests/python/test_cuda.py runs them."""

import rushlight as torch

collect_ignore_glob = (["test_*.py"], ["test_[!o]*.py"], [])[min(torch.cuda.device_count(), 2)]
