"""Where flight files of processes lie in shared memory; where a process puts its own: recorder.py."""

from __future__ import annotations

import os
from pathlib import Path

from loopcanary.engine.recorder import MEMORY, SUFFIX, name_in_memory
from loopcanary.whose_exception import ours_of

SHARED_MEMORY = Path(os.environ.get("LOOPCANARY_FLIGHT_DIR") or MEMORY)
"""For who reads; the program's own is a setting."""
_FORGOTTEN_S = 30 * 86_400


def place_in_memory(user: int, name: str, shared_memory: Path = SHARED_MEMORY) -> Path:
    """Where the file lies to which a user's link of that name leads, and no other does."""
    return shared_memory / name_in_memory(user, name)


def in_memory(shared_memory: Path = SHARED_MEMORY) -> list[Path]:
    """Flight files in shared memory: those of this user, and for root all."""
    try:
        owner = "*" if os.geteuid() == 0 else str(os.geteuid())
        return list(shared_memory.glob(f"loopcanary-{owner}-*{SUFFIX}"))
    except ours_of(OSError):
        return []


def forgotten(now_s: float, shared_memory: Path = SHARED_MEMORY) -> list[Path]:
    """Flight files of this user that were made more than a month ago: of programs that still run, or of dead
    ones whose store is gone or never looked at again."""
    try:
        paths = list(shared_memory.glob(f"loopcanary-{os.geteuid()}-*{SUFFIX}"))
    except ours_of(OSError):
        return []
    return [path for path in paths if _is_old_and_own(path, now_s)]


def _is_old_and_own(path: Path, now_s: float) -> bool:
    try:
        facts = path.lstat()
    except ours_of(OSError):
        return False
    # Stores through a mapping leave the time of a file on tmpfs as it is.
    return facts.st_uid == os.geteuid() and now_s - facts.st_mtime > _FORGOTTEN_S
