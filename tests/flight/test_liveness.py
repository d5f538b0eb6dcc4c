"""Whether the process of a flight file runs: told from /proc, or not told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.building.flight_file import BOOT_ID, FlightBuilder

from loopcanary.flight import FlightFile, FlightHeader, Liveness, liveness

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


def header(**fields: object) -> FlightHeader:
    return FlightFile(bytes(FlightBuilder(lane_room=0, slot_room=0, **fields))).header


def stat_line(pid: int, *, name: str = "python", state: str = "S", threads: int = 1, start: int = 777) -> str:
    """A line of /proc/PID/stat (proc(5)): state is field 3, num_threads 20, starttime 22."""
    fields = ["0"] * 52
    fields[0], fields[1], fields[2], fields[19], fields[21] = (
        str(pid),
        f"({name})",
        state,
        str(threads),
        str(start),
    )
    return " ".join(fields) + "\n"


@pytest.fixture
def proc(tmp_path) -> Path:
    """A procfs of the boot and pid namespace of `header()`, without any process."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text(BOOT_ID + "\n")
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").touch()
    return tmp_path


def namespace(proc: Path) -> int:
    return (proc / "self/ns/pid").stat().st_ino


def run(proc: Path, pid: int, **facts: object) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "stat").write_text(stat_line(pid, **facts))


FREE_PID = (1 << 22) - 1  # the largest, which Linux gives out only after all others


@pytest.mark.parametrize(
    ("title", "facts", "expected"),
    [
        ("runs", {}, Liveness.RUNNING),
        ("sleeps under a name with spaces and parentheses", {"name": "a) Z 1 (b"}, Liveness.RUNNING),
        ("is stopped", {"state": "T"}, Liveness.RUNNING),
        ("is another one with the same pid", {"start": 778}, Liveness.DEAD),
        ("is a zombie", {"state": "Z"}, Liveness.DEAD),
        (
            "is a zombie whose other threads run",
            {"state": "Z", "threads": 3},
            Liveness.RUNNING,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_process_that_proc_shows(proc, title, facts, expected):
    run(proc, 41, **facts)

    assert liveness(header(pid=41, pid_namespace=namespace(proc)), proc=proc) is expected


def test_a_process_that_proc_does_not_show_is_dead(proc):
    assert liveness(header(pid=FREE_PID, pid_namespace=namespace(proc)), proc=proc) is Liveness.DEAD


def test_a_process_that_only_proc_hides_is_not_called_dead(proc):
    own = header(pid=os.getpid(), pid_namespace=namespace(proc))

    assert liveness(own, proc=proc) is Liveness.UNKNOWABLE


def test_another_boot_is_another_host_or_a_restart(proc):
    other = header(boot_id=bytes(15) + b"\1", pid_namespace=namespace(proc))

    assert liveness(other, proc=proc) is Liveness.UNKNOWABLE
    assert liveness(other, proc=proc, same_host=True) is Liveness.DEAD


@pytest.mark.parametrize(
    "fields",
    [
        {"boot_id": bytes(16)},
        {"pid_namespace": 0},
        {"pid_namespace": 1},
        {"pid": 0},
        {"pid": (1 << 64) - 1},
        {"process_start": 0},
    ],
    ids=" ".join,
)
def test_a_header_that_does_not_say_enough(proc, fields):
    run(proc, 41)

    assert liveness(header(**{"pid_namespace": namespace(proc), **fields}), proc=proc) is Liveness.UNKNOWABLE


@pytest.mark.parametrize("text", ["", "41", "41 (x) S", "41 (x) S " + "y " * 40], ids=range(4))
def test_a_stat_that_makes_no_sense(proc, text):
    (proc / "41").mkdir()
    (proc / "41/stat").write_text(text)

    assert liveness(header(pid_namespace=namespace(proc)), proc=proc) is Liveness.UNKNOWABLE


def test_a_system_without_proc(tmp_path):
    assert liveness(header(), proc=tmp_path / "nothing") is Liveness.UNKNOWABLE


# ---- this machine's processes ---------------------------------------------------------------


def header_of(pid: int) -> FlightHeader:
    start = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return header(
        pid=pid,
        process_start=start,
        boot_id=bytes.fromhex(boot_id.replace("-", "")),
        pid_namespace=Path("/proc/self/ns/pid").stat().st_ino,
    )


@linux
def test_this_process_runs():
    assert liveness(header_of(os.getpid())) is Liveness.RUNNING


@linux
def test_a_killed_child_is_dead_before_it_is_reaped():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    of_child = header_of(child.pid)
    assert liveness(of_child) is Liveness.RUNNING

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie from here on
    assert liveness(of_child) is Liveness.DEAD

    child.communicate()
    assert liveness(of_child) is Liveness.DEAD
