from __future__ import annotations

from tests.cli.conftest import loopcanary, place

__all__ = ["loopcanary", "place"]
