"""The watchers, one file each. README.md says how to add one."""

from __future__ import annotations

import importlib
import json
import pkgutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from zoo import loops
from zoo.observation import Report

THRESHOLD_MS = 100
"""The same for every watcher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a program under a watcher: what both sides may use, and what is there afterwards."""

    program: Path
    folder: Path
    """Empty at the start, of this run alone; also the working folder."""
    python: str
    environment: dict[str, str]
    stderr: list[tuple[int, str]] = field(default_factory=list)
    """Lines of stderr, each with the CLOCK_MONOTONIC time at which it could be read."""

    @property
    def stderr_text(self) -> str:
        """All of stderr."""
        return "".join(line for _, line in self.stderr)


class Watcher(Protocol):
    """A module in this folder: the name is its file's, with dashes for underscores."""

    PACKAGE: str
    """What is installed, as in requirements.txt; empty for what comes with Python."""

    def command(self, run: Run) -> list[str]:
        """The command that runs the program watched."""

    def reports(self, run: Run) -> Sequence[Report]:
        """What it left behind, after the program's end or its kill."""

    # LOOPS: tuple[str, ...] names the loops that it says it watches, where these are more than asyncio's.

    # In the watched process, for watchers that are started from code; see zoo.launch:
    # def around() -> AbstractAsyncContextManager: entered around the program, inside its loop


def names() -> list[str]:
    """Every watcher there is, loopcanary first."""
    found = [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]
    return sorted(found, key=lambda name: (not name.startswith("loopcanary"), name))


def find(name: str) -> Watcher:
    """The watcher of that name."""
    module: Watcher = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    return module


def loops_of(name: str) -> tuple[str, ...]:
    """The kinds of loop that it says it watches: asyncio's, if it says nothing."""
    found: tuple[str, ...] = getattr(find(name), "LOOPS", tuple(loops.OF_ASYNCIO))
    return found


def launched(run: Run, name: str) -> list[str]:
    """The command for a watcher that is started from code, by its `around`."""
    return [run.python, "-m", "zoo.launch", name, str(run.program)]


_NOTES = "notes.jsonl"


def note(**what: Any) -> None:
    """In the watched process: keeps what a watcher's callback was told, at once, in the working folder."""
    with open(_NOTES, "a") as file:
        file.write(json.dumps({"told_ns": time.monotonic_ns()} | what) + "\n")


def noted(run: Run) -> list[dict[str, Any]]:
    """What was kept."""
    path = run.folder / _NOTES
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
