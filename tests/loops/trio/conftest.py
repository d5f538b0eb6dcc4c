from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.this_process import watch

__all__ = ["watch"]

pytest.importorskip("loopcanary._native", reason="needs the C core")
pytest.importorskip("trio", reason="trio is not installed")

# The zoo is a program of the tree, not a package that is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
