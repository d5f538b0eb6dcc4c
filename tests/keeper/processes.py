"""Keepers and watched programs as processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from loopcanary.assembly.store import open_store
from loopcanary.keeper.seat import statuses
from loopcanary.model import Cause, Stall
from loopcanary.model.search import STALLS

GIVES_UP_S = 280
Program = subprocess.Popen[str]
Start = Callable[..., Program]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Program] = []
    stores: set[Path] = set()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}

    def start(*words: object, under: tuple[str, ...] = (), **environment: str) -> Program:
        stores.update(word for word in words if isinstance(word, Path) and word.suffix != ".py")
        program = subprocess.Popen(
            [*under, sys.executable, "-m", "loopcanary", *map(str, words)],
            env=clean | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(program)
        return program

    yield start
    for program in started:
        program.kill()
        program.communicate()
    for store in stores:  # keepers that programs have started
        for status in statuses(str(store)):
            with suppress(ProcessLookupError, KeyError):
                os.kill(status["pid"], signal.SIGKILL)


def keep(start: Start, *stores: Path) -> Program:
    """A keeper that is at work: it says when it is."""
    keeper = start("keep", *stores)
    for store in stores:
        assert line_of(keeper) == f"at work: {store}\n"
    return keeper


def line_of(program: Program) -> str:
    assert program.stdout is not None
    return program.stdout.readline()


def was_killed(line: str, program: str) -> bool:
    """Whether a keeper says so. A busy host may have made stalls before the hang, which it counts, too."""
    return re.match(rf"{re.escape(program)} was killed: [0-9]+ stalls?, ", line) is not None


def stored(store: Path) -> list[Stall]:
    """What is in the store, and nothing taken in for it. Without what the host did to a loop before its hang,
    which is the one stall that these programs make."""
    opened = open_store(store)
    try:
        found = list(opened.reader.issues(STALLS))
    finally:
        opened.close()
    return [stall for stall in found if stall.cause is not Cause.HOST and stall.samples]


def flight_files(store: Path) -> list[str]:
    return [path.name for path in (store / "flight").iterdir()]
