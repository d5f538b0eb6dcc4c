from __future__ import annotations

import pytest
from tests.this_process import watch

__all__ = ["watch"]

pytest.importorskip("loopcanary._native", reason="needs the C core")
pytest.importorskip("gevent", reason="gevent is not installed")
