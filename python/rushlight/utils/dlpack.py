"""Exchanging tensors with other libraries by DLPack, under the names PyTorch has for it here."""

from rushlight import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
