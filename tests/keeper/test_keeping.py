"""`loopcanary keep` beside real programs that are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.keeper.processes import (
    GIVES_UP_S,
    Program,
    Start,
    flight_files,
    keep,
    line_of,
    stored,
    was_killed,
)

import loopcanary
from loopcanary.assembly.store import open_store, recover
from loopcanary.model import SessionEnd, StallState
from loopcanary.model.search import IssueQuery

PROGRAM = Path(__file__).parent / "programs" / "hanging.py"
pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open"),
]


def hang(start: Start, store: Path, *under: str) -> Program:
    """A program whose stall is in its flight file."""
    program = start("run", "--store", store, PROGRAM, under=under, LOOPCANARY_KEEPER="0")  # it starts none
    assert line_of(program) == "hangs\n"
    wanted = open_store(store)
    while not recover(wanted).ongoing:
        assert program.poll() is None
        time.sleep(0.05)
    wanted.close()
    return program


@pytest.mark.parametrize("first", ["keeper", "program"])
def test_what_a_killed_program_leaves_is_stored_at_once(start: Start, store: Path, first: str):
    if first == "program":
        program, keeper = hang(start, store), keep(start, store)
    else:
        keeper, program = keep(start, store), hang(start, store)
    [link] = (store / "flight").glob("*.flight")
    memory = link.readlink() if link.is_symlink() else link
    program.kill()
    assert was_killed(line_of(keeper), f"hanging.py (pid {program.pid})")
    [stall] = [one for one in stored(store) if one.state is StallState.KILLED]  # a busy machine has more
    assert stall.pid == program.pid
    assert (flight_files(store), memory.exists()) == ([], False)
    opened = open_store(store)
    [session] = opened.reader.sessions(IssueQuery())
    opened.close()
    assert (session.end, session.pid) == (SessionEnd.KILLED, program.pid)


APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Under which a program has the number 1 in a namespace of its own, as in a container."""


def test_a_program_in_another_container_is_kept_too(start: Start, store: Path):
    if shutil.which(APART[0]) is None or subprocess.run([*APART, "true"], check=False).returncode:
        pytest.skip("needs unshare, and the right to use it")
    keeper, program = keep(start, store), hang(start, store, *APART)
    program.kill()
    assert was_killed(line_of(keeper), "hanging.py (pid 1)")
    assert flight_files(store) == []


def test_a_program_that_ends_well_leaves_nothing_to_a_keeper(start: Start, store: Path):
    keeper, program = keep(start, store), hang(start, store)
    program.communicate(timeout=GIVES_UP_S)
    keeper.terminate()
    out, err = keeper.communicate(timeout=GIVES_UP_S)
    assert (keeper.returncode, out, err) == (0, "", "")
    assert [stall.state for stall in stored(store)] == [StallState.ENDED]


def test_one_keeper_serves_many_stores(start: Start, tmp_path: Path):
    stores = [tmp_path / "web", tmp_path / "jobs"]
    keeper = keep(start, *stores)
    # A broken file beside stops nothing.
    (stores[0] / "flight" / "broken.flight").write_bytes(b"LCFLIGHT" * 1_000)
    (stores[0] / "flight" / "loop.flight").symlink_to("loop.flight")
    for store in stores:
        program = hang(start, store)
        program.kill()
        assert f"(pid {program.pid}) was killed" in line_of(keeper)
        assert [stall.pid for stall in stored(store)] == [program.pid]


def test_what_a_killed_keeper_left_the_next_one_takes_in(start: Start, store: Path):
    keeper, program = keep(start, store), hang(start, store)
    for one in (keeper, program):
        one.kill()
        one.wait(timeout=GIVES_UP_S)
    other = keep(start, store)
    assert f"(pid {program.pid}) was killed" in line_of(other)
    assert len(stored(store)) == 1


def test_what_cannot_be_said_on_a_full_disk_stops_no_keeper():
    program = "from loopcanary.cli.refusals import complain; complain('something'); print('goes on')"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert done.stdout == "goes on\n"  # the status is Python's, which flushes stderr at its end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_keeper_ends_when_it_is_asked_to(start: Start, store: Path, number: signal.Signals):
    keeper, program = keep(start, store), hang(start, store)
    keeper.send_signal(number)
    out, err = keeper.communicate(timeout=GIVES_UP_S)
    assert (keeper.returncode, out, err) == (0, "", "")
    assert program.poll() is None
    assert [name.endswith(".flight") for name in flight_files(store)].count(True) == 1


def test_the_status_says_which_keepers_are_at_work(start: Start, store: Path):
    keeper, program = keep(start, store), hang(start, store)
    asked = start("keep", "--status", store)
    out, err = asked.communicate(timeout=GIVES_UP_S)
    assert (asked.returncode, err) == (0, "")
    assert out.startswith(f"{store}: pid {keeper.pid}, loopcanary ")
    assert f"; watches 1 program ({program.pid}); has stored 0 stalls of 0 programs\n" in out
    keeper.kill()
    keeper.wait(timeout=GIVES_UP_S)
    asked = start("keep", "--status", store)
    assert asked.communicate(timeout=GIVES_UP_S) == ("no keeper is running\n", "")
    assert asked.returncode == 1


def test_one_that_a_program_starts_ends_where_another_is_at_work(start: Start, store: Path):
    keep(start, store)
    other = start("keep", "--apart", store)
    assert other.communicate(timeout=GIVES_UP_S) == ("", "")
    assert other.returncode == 0


def test_one_that_a_program_starts_needs_no_dependency(store: Path):
    started = (
        "import sys, signal, threading\n"
        "sys.path[:] = [one for one in sys.path if not one.endswith('-packages')] + [sys.argv.pop(1)]\n"
        "from loopcanary.cli import main\n"
        "from loopcanary.keeper.loop import Keeper\n"
        "run = Keeper.run\n"
        "def seen(keeper):\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    run(keeper)\n"
        "Keeper.run = seen\n"
        "status = main(sys.argv[1:])\n"
        "print(status, 'click' in sys.modules)"
    )
    packages = store.parent / "packages"
    packages.mkdir()
    (packages / "loopcanary").symlink_to(Path(loopcanary.__file__).parent)
    words = [sys.executable, "-c", started, packages, "keep", "--apart", store]
    done = subprocess.run(words, capture_output=True, text=True, timeout=GIVES_UP_S, check=True)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("0 False", "")


@pytest.mark.parametrize("apart", [(), ("--apart",)])
def test_a_folder_that_is_no_store_is_not_made_one(start: Start, tmp_path: Path, apart: tuple[str, ...]):
    (tmp_path / "notes.txt").touch()
    keeper = start("keep", *apart, tmp_path)
    out, err = keeper.communicate(timeout=GIVES_UP_S)
    assert (keeper.returncode, out) == (2, "")
    assert "is not a store" in err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
