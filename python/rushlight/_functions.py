"""Functions of the package that need Python over operators."""

from __future__ import annotations

__all__ = []
