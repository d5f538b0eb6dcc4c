"""The extension, with its types."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from loopcanary._native import Native


def load() -> Native:
    """The extension; ImportError where it is not built or cannot be loaded."""
    return cast("Native", importlib.import_module("loopcanary._native"))
