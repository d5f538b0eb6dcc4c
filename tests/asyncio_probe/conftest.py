from __future__ import annotations

from tests.this_process import watch

__all__ = ["watch"]
