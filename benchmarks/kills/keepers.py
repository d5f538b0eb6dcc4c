"""Kills the keepers of a store, too, at any moment."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from loopcanary.keeper.seat import statuses

BETWEEN_S = (0.02, 1.5)


class KeeperKiller:
    """A context manager: kills whichever keeper is at work, again and again. `kills`: how often it did."""

    def __init__(self, store: Path, seed: int) -> None:
        self._store = store
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.kills = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._chance.uniform(*BETWEEN_S)):
            for status in statuses(str(self._store)):
                pid = status.get("pid")
                if isinstance(pid, int) and self._is_keeper(pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        self.kills += 1

    def _is_keeper(self, pid: int) -> bool:
        """The status may be of one that is dead already, and its number given out again."""
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            return b"keep" in words and os.fsencode(str(self._store)) in words
        return False
