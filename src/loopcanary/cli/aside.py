"""For a command that a program has started: nothing of the program's is kept."""

from __future__ import annotations

import os
from contextlib import suppress

_DESCRIPTORS_MAX = 65_536


def go_aside() -> None:
    """Leaves its folder, its terminal and its open files."""
    with suppress(OSError):
        os.chdir("/")
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()
    with suppress(OSError, ValueError):
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _DESCRIPTORS_MAX))
