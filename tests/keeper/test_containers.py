"""A keeper and programs in containers: each has its own processes and its own /dev/shm."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.keeper.processes import (
    GIVES_UP_S,
    Program,
    Start,
    flight_files,
    line_of,
    stored,
    was_killed,
)

from loopcanary import keeper as place
from loopcanary.model import StallState

HOLDING = Path(__file__).parent / "programs" / "holding.py"
CONTAINER = (
    *("unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"),
    *("sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"),
)


def may_contain() -> bool:
    if os.geteuid() or shutil.which("unshare") is None:
        return False
    return subprocess.run([*CONTAINER, "true"], check=False, capture_output=True, timeout=60).returncode == 0


pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not may_contain(), reason="needs root, unshare and its namespaces"),
]


def contained(start: Start, store: Path, **environment: str) -> Program:
    return start("run", "--store", store, HOLDING, under=CONTAINER, LOOPCANARY_KEEPER="1", **environment)


def until(program: Program, words: str) -> str:
    assert program.stderr is not None
    while words not in (line := program.stderr.readline()):
        assert line
    return line


def test_a_keeper_of_another_container_serves_a_program(start: Start, store: Path, tmp_path: Path):
    memory = tmp_path / "memory"
    memory.mkdir()
    both = {place.FLIGHT_DIR: str(memory)}
    keeper = start("keep", store, **both)
    assert line_of(keeper) == f"at work: {store}\n"
    program = contained(start, store, **both)
    until(program, " and still in progress, ")
    [flight] = [name for name in flight_files(store) if name.endswith(".flight")]
    assert (store / "flight" / flight).readlink().parent == memory
    assert sorted(path.suffix for path in (store / "keeper").iterdir()) == [".json", ".lock"]
    assert {".bell", ".flight"} < {path.suffix for path in memory.iterdir()}
    program.kill()
    assert was_killed(line_of(keeper), "holding.py (pid 1)")
    assert [stall.state for stall in stored(store)] == [StallState.KILLED]
    assert (flight_files(store), [path.suffix for path in memory.iterdir()]) == ([], [".bell"])


def test_a_keeper_names_the_setting_that_is_missing(start: Start, store: Path):
    keeper = start("keep", store)
    assert line_of(keeper) == f"at work: {store}\n"
    program = contained(start, store)
    line = until(keeper, place.FLIGHT_DIR)
    assert "/dev/shm/loopcanary-0-" in line
    assert "memory-backed volume" in line
    program.communicate("x", timeout=GIVES_UP_S)
