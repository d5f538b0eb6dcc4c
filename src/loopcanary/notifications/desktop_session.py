"""Whether there is a desktop to notify. Loaded in the watched program, too: it loads nothing itself."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from loopcanary.notifications.words import NO_LIBRARY


def obstacle(environ: Mapping[str, str] = os.environ) -> str | None:
    """Why there can be no desktop notifications here; None where there can, as far as one sees from here."""
    if importlib.util.find_spec("desktop_notifier") is None:
        return NO_LIBRARY
    if sys.platform.startswith("linux") and not _has_session_bus(environ):
        return "there is no desktop session here (no D-Bus session bus)"
    return None


def _has_session_bus(environ: Mapping[str, str]) -> bool:
    if environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return True
    runtime = environ.get("XDG_RUNTIME_DIR")
    return bool(runtime) and Path(str(runtime), "bus").exists()
