"""How PyInstaller takes loopcanary into frozen programs: entry point group `pyinstaller40`."""

from __future__ import annotations

from pathlib import Path


def hook_folders() -> list[str]:
    """The folder of the hook, hook-loopcanary.py."""
    return [str(Path(__file__).parent)]
