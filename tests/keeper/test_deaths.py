"""What a keeper knows of a program's end: the signal, and why, where that can be known."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.stalls import STALL
from tests.keeper.processes import Start, keep, line_of, stored
from tests.keeper.test_living import held

from loopcanary.assembly.keeper.deaths import Death
from loopcanary.keeper.exits import signal_of, wait_status
from loopcanary.model import KilledBy

needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open")
PID, PARENT = 20, 10
S = 1_000_000_000
LONG = replace(STALL, duration_ns=31 * S)
SHORT = replace(STALL, duration_ns=S)
TIMED_OUT = "gunicorn arbiter: worker timeout 9 s"
ABORTED, KILLED = signal.SIGABRT | 0x80, int(signal.SIGKILL)
"""As `wait` has them; one left a core."""


def death(tmp_path: Path, status: int | None, *parent: str, groups: str = "", **environment: str) -> Death:
    """Of a process whose parent has this command line."""
    for pid, words in ((PID, ("python",)), (PARENT, parent)):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "cmdline").write_text("".join(f"{word}\0" for word in words))
        (folder / "environ").write_text("".join(f"{name}={value}\0" for name, value in environment.items()))
        (folder / "cgroup").write_text(groups)
    made = Death(PID, PARENT, proc=tmp_path / "proc", cgroup=tmp_path / "cgroup")
    made.status = status
    return made


def reason(found: Death, stall=LONG) -> str | None:
    killed = found.in_stall(stall)
    return None if killed is None else killed.reason


@needs_pidfd
@pytest.mark.parametrize("is_reaped", [False, True], ids=["a zombie", "one that its parent has waited for"])
def test_how_a_process_ended_that_is_no_child_of_ours(is_reaped: bool) -> None:
    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pidfd = os.pidfd_open(program.pid)
    try:
        program.kill()
        select.select([pidfd], [], [])
        if is_reaped:
            program.wait()
        status = wait_status(pidfd, program.pid)
    finally:
        program.communicate()
        os.close(pidfd)
    # Before Linux 6.15 nobody but the parent is told afterwards.
    assert signal_of(status) in ({"SIGKILL", None} if is_reaped else {"SIGKILL"})


@pytest.mark.parametrize(
    ("status", "name"),
    [(None, None), (0, None), (256, None), (ABORTED, "SIGABRT"), (34, "SIGRTMIN"), (50, "signal 50")],
)
def test_the_signal_of_a_status(status: int | None, name: str | None) -> None:
    assert signal_of(status) == name


def test_of_an_unknown_end_nothing_is_said(tmp_path: Path) -> None:
    assert death(tmp_path, None).in_stall(LONG) is None


def test_of_an_exit_in_the_stall_the_status_is_said(tmp_path: Path) -> None:
    said = "exit status 3: the program ended itself, as by os._exit"
    found = death(tmp_path, 3 << 8)
    assert found.in_stall(LONG) == KilledBy(reason=said)
    before = KilledBy(reason="SIGTERM came before, from the kernel")
    assert found.in_stall(replace(LONG, killed_by=before)) == KilledBy(reason=f"{said}; {before.reason}")


def test_what_its_signals_say_is_added(tmp_path: Path) -> None:
    found = death(tmp_path, KILLED, "gunicorn", "--timeout=9")
    by = KilledBy(signal="SIGKILL", pid=PARENT, uid=0, command="gunicorn: master")
    other = replace(by, signal="SIGABRT")
    said = f"{TIMED_OUT}; SIGABRT from gunicorn: master (pid 10, uid 0) came before"
    assert found.in_stall(replace(LONG, killed_by=other)) == KilledBy(signal="SIGKILL", reason=said)
    handled = KilledBy(reason="SIGTERM came before, from the kernel")
    assert found.in_stall(replace(SHORT, killed_by=handled)) == replace(handled, signal="SIGKILL")
    found.status = None
    assert found.in_stall(replace(LONG, killed_by=by)) == by


@pytest.mark.parametrize(
    ("ended_by", "by", "is_named"),
    [
        (KILLED, None, False),
        (KILLED, KilledBy(signal="SIGABRT", pid=PARENT + 1), False),
        (KILLED, KilledBy(reason=f"SIGABRT came 1.2 s before its end, from gunicorn (pid {PARENT})"), True),
        (KILLED, KilledBy(reason=f"SIGABRT came 1.2 s before its end, from sh (pid {PARENT + 1})"), False),
        (KILLED, KilledBy(reason=f"SIGTERM came 1.2 s before its end, from gunicorn (pid {PARENT})"), False),
        (ABORTED, None, True),
        (ABORTED, KilledBy(signal="SIGABRT", pid=PARENT), True),
        (ABORTED, KilledBy(signal="SIGABRT", pid=PARENT + 1), False),
    ],
)
def test_an_arbiter_is_named_only_where_it_has_sent_the_signal(
    tmp_path: Path, ended_by: int, by: KilledBy | None, is_named: bool
) -> None:
    found = death(tmp_path, ended_by, "gunicorn", "--timeout=9")
    assert (TIMED_OUT in (reason(found, replace(LONG, killed_by=by)) or "")) is is_named


def test_an_arbiter_that_is_gone_has_killed_nobody(tmp_path: Path) -> None:
    found = death(tmp_path, ABORTED, "gunicorn", "--timeout=9")
    (tmp_path / "proc" / str(PARENT) / "cmdline").unlink()
    assert reason(found) is None


def test_without_a_reason_the_signal_is_said(tmp_path: Path) -> None:
    assert death(tmp_path, KILLED, "bash").in_stall(LONG) == KilledBy(signal="SIGKILL")


@pytest.mark.parametrize(
    ("parent", "environment", "seconds"),
    [
        (("/usr/bin/python3", "/usr/bin/gunicorn", "-t", "7", "app:app"), {}, 7),
        (("gunicorn: master [shop]", "--timeout=9"), {}, 9),
        (("python3", "/srv/bin/gunicorn", "app:app"), {}, 30),
        (("python3", "/srv/bin/gunicorn", "app:app"), {"GUNICORN_CMD_ARGS": "--timeout 5"}, 5),
        (("python3", "-m", "gunicorn", "--timeout", "11", "app:app"), {}, 11),
    ],
    ids=["an option", "an option behind =", "its default", "its environment", "a module"],
)
def test_the_timeout_of_a_gunicorn_is_named(
    tmp_path: Path, parent: tuple[str, ...], environment: dict[str, str], seconds: int
) -> None:
    found = death(tmp_path, ABORTED, *parent, **environment)
    assert reason(found) == f"gunicorn arbiter: worker timeout {seconds} s"


def test_a_gunicorn_kills_workers_that_did_not_time_out_as_well(tmp_path: Path) -> None:
    assert reason(death(tmp_path, KILLED, "python3", "/bin/gunicorn", "app:app"), SHORT) is None


def test_no_timeout_is_guessed_where_a_file_may_set_it(tmp_path: Path) -> None:
    assert reason(death(tmp_path, ABORTED, "python3", "/bin/gunicorn", "-c", "conf.py", "app:app")) is None


def test_a_watchdog_of_systemd_is_named(tmp_path: Path) -> None:
    found = death(tmp_path, ABORTED, "/usr/lib/systemd/systemd", WATCHDOG_USEC="20000000")
    assert reason(found) == "systemd watchdog: no sign of life for 20 s"


@pytest.mark.parametrize(
    ("groups", "file"),
    [
        ("0::/app\n", "app/memory.events"),
        ("0::/../other\n", "memory.events"),
        ("3:cpu:/\n4:memory:/app\n", "memory/app/memory.oom_control"),
    ],
    ids=["version 2", "version 2 in a container", "version 1"],
)
def test_a_kill_for_lack_of_memory_is_counted_by_the_group(tmp_path: Path, groups: str, file: str) -> None:
    counts = tmp_path / "cgroup" / file
    counts.parent.mkdir(parents=True)
    counts.write_text("oom 4\noom_kill 3\n")
    found = death(tmp_path, KILLED, "bash", groups=groups)
    assert reason(found) is None, "those were others"
    counts.write_text("oom 5\noom_kill 4\n")
    assert reason(found) == "cgroup: out of memory"
    found.look()
    assert reason(found) is None, "that was before this hang"


@pytest.mark.native
@needs_pidfd
def test_the_signal_that_killed_a_hanging_program_is_stored(start: Start, store: Path) -> None:
    keeper = keep(start, store)
    program = held(start, store)
    program.send_signal(signal.SIGTERM)
    assert "was killed" in line_of(keeper)
    [stall] = stored(store)
    # Its parent does not wait for it before the keeper has seen it.
    assert stall.killed_by == KilledBy(signal="SIGTERM")
