"""The extension, with its types."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from loopcanary._native import Native


def is_main_interpreter() -> bool:
    """Whether this is the interpreter that the process began with. The extension loads in no other."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # from 3.13 on; before
        with suppress(ImportError):
            interpreters: Any = importlib.import_module(name)
            return bool(interpreters.get_current() == interpreters.get_main())
    return True


def load() -> Native:
    """The extension; ImportError where it is not built or cannot be loaded."""
    return cast("Native", importlib.import_module("loopcanary._native"))
