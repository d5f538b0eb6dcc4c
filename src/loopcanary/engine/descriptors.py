"""How many descriptors the process may have open, and what that leaves for us."""

from __future__ import annotations

import os

LEAST = 32
"""Where fewer are allowed, those that we open may be the ones that the program lacks."""
FEW = 256
"""Where fewer are allowed, most of ours are open during stalls only (native/core/host/kept_file.h)."""


def allowed_descriptors() -> int:
    """The soft limit; FEW where the system has none, or does not tell."""
    try:
        allowed = os.sysconf("SC_OPEN_MAX")
    except (AttributeError, ValueError, OSError):
        return FEW
    return allowed if allowed >= 0 else FEW
