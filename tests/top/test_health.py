"""loopcanary health: whether loops make progress, pure and of programs that run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.cli.targets import until
from tests.top.readings import MS, NOW, S, in_callback, lane
from tests.top.test_programs import HANGS, program_name, watched

from loopcanary.assembly.health import programs
from loopcanary.cli import main
from loopcanary.cli.commands.health import _line
from loopcanary.model.live import LoopProgress, ProgramProgress, progress_of

IDLE = """
import asyncio
async def main():
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()
asyncio.run(main())
"""
NO_LOOP = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n"
MANY_WAIT = """
import asyncio
async def main():
    event = asyncio.Event()
    waiting = [asyncio.ensure_future(event.wait()) for _ in range(1_000)]
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(*waiting)
asyncio.run(main())
"""


def program(*loops: LoopProgress, stopped: bool = False) -> ProgramProgress:
    return ProgramProgress(name="shop", pid=7, started_ns=1, is_stopped=stopped, loops=loops)


def busy_ns(*lanes) -> list[int]:
    return [loop.busy_ns for loop in progress_of(lanes, NOW)]


# ---- pure ---------------------------------------------------------------------------------------


def test_a_loop_that_waits_is_healthy_for_as_long_as_it_likes():
    assert busy_ns(lane(sums={"opened_ns": NOW - 3_600 * S})) == [0]


def test_a_turn_counts_from_its_begin():
    assert busy_ns(in_callback(MS, turn_since_ns=NOW - 9 * S)) == [9 * S]
    assert busy_ns(in_callback(MS, turn_since_ns=None)) == [MS]


def test_what_expect_grants_does_not_count():
    assert busy_ns(in_callback(9 * S, allowance_ns=6 * S)) == [3 * S]
    assert busy_ns(in_callback(9 * S, allowance_ns=60 * S)) == [0]


def test_closed_loops_and_threads_without_a_loop_are_left_out():
    gone = in_callback(9 * S, sums={"closed_ns": NOW - S})
    request = in_callback(9 * S, sums={"loop_kind": "thread"})
    assert busy_ns(gone, request, lane()) == [0]


def test_a_loop_is_stuck_beyond_the_limit():
    [loop] = progress_of([in_callback(5 * S)], NOW)
    assert loop == LoopProgress(thread="MainThread", kind="asyncio", busy_ns=5 * S, callback="handle")
    assert program(loop).is_healthy(5 * S)
    assert program(loop).stuck(5 * S - 1) == (loop,)


def test_a_loop_that_is_busy_within_the_limit_is_not_said_to_get_on():
    [loop] = progress_of([in_callback(7 * S)], NOW)
    assert _line(program(loop), 30 * S) == (
        "shop (pid 7): MainThread (asyncio) has not waited for events for 7.00 s, in handle; "
        "the limit is 30.0 s"
    )


def test_a_stopped_program_is_not_healthy_whatever_its_loops_do():
    [waits] = progress_of([lane()], NOW)
    assert program(waits, stopped=True).stuck(S) == (waits,)
    assert not program(stopped=True).is_healthy(S)
    assert program().is_healthy(S)


# ---- programs that run ----------------------------------------------------------------------------


def asked(folder: Path, *words: str) -> int:
    return main(["health", "--name", f"{program_name(folder)}.py", *words])


@pytest.mark.native
@pytest.mark.parametrize("source", [IDLE, MANY_WAIT, NO_LOOP], ids=["idle", "many wait", "no loop"])
def test_a_program_that_waits_is_healthy(tmp_path, package_path, capsys, source):
    with watched(source, tmp_path, package_path) as process:
        # The turn that said "ready" may not be over yet.
        until(lambda: asked(tmp_path, "--limit", "1ms") == 0 or None)
        capsys.readouterr()
        assert main(["health", str(process.pid)]) == 0
    words = "no loop runs" if source is NO_LOOP else "the loop makes progress"
    assert capsys.readouterr().out == f"{program_name(tmp_path)}.py (pid {process.pid}): {words}\n"


@pytest.mark.native
def test_a_loop_that_hangs_is_named(tmp_path, package_path, capsys):
    with watched(HANGS, tmp_path, package_path) as process:
        until(lambda: asked(tmp_path, "--limit", "1ms") or None)
        assert asked(tmp_path, "--limit", "1h") == 0
        capsys.readouterr()
        assert asked(tmp_path, "--limit", "1ms", "--format", "json") == 1
        [found] = json.loads(capsys.readouterr().out)["programs"]
        assert main(["health", str(process.pid), "--limit", "1ms"]) == 1
    [loop] = found["loops"]
    assert (found["pid"], found["healthy"], found["stopped"]) == (process.pid, False, False)
    assert (loop["thread"], loop["kind"], loop["healthy"]) == ("MainThread", "asyncio", False)
    assert loop["turn_ms"] > 1
    assert "MainThread (asyncio) has not waited for events for " in capsys.readouterr().out


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=280) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.native
def test_probes_are_answered_by_http(tmp_path, package_path):
    with watched(HANGS, tmp_path, package_path) as process:
        until(lambda: asked(tmp_path, "--limit", "1ms") or None)
        words = "health", "--listen", "0", "--name", f"{program_name(tmp_path)}.py", "--limit", "1h"
        serves = subprocess.Popen(
            [sys.executable, "-m", "loopcanary", *words], stdout=subprocess.PIPE, text=True
        )
        try:
            address = serves.stdout.readline().removeprefix("answers at ").strip()
            assert address.startswith("http://127.0.0.1:")
            status, text = get(address)
            assert (status, json.loads(text)["programs"][0]["pid"]) == (200, process.pid)
            status, text = get(f"{address}?limit=1ms")
            assert (status, json.loads(text)["programs"][0]["healthy"]) == (503, False)
            assert get(f"{address}?limit=soon")[0] == 400
            head = urllib.request.Request(address, method="HEAD")
            with urllib.request.urlopen(head, timeout=280) as answer:
                assert (answer.status, answer.read()) == (200, b"")
            process.kill()
            process.wait()
            status, text = get(address)
            assert (status, json.loads(text)) == (503, {"programs": []})
        finally:
            serves.terminate()
            assert serves.wait() == 0
            serves.stdout.close()


@pytest.mark.parametrize("place", ["shop", "a..b:0", "127.0.0.1:port", "127.0.0.1:70000", "256.0.0.1:0"])
def test_a_place_where_none_can_listen_is_said(capsys, place):
    assert main(["health", "--listen", place]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"loopcanary: --listen {place}")


@pytest.mark.native
def test_a_stopped_program_is_not_healthy(tmp_path, package_path, capsys):
    with watched(IDLE, tmp_path, package_path) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert asked(tmp_path) == 1
        assert capsys.readouterr().out.endswith(": stopped by a signal\n")
        process.send_signal(signal.SIGCONT)
        os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        assert asked(tmp_path, "--limit", "1h") == 0


@pytest.mark.native
def test_a_program_that_has_ended_is_no_longer_there(tmp_path, package_path, capsys):
    with watched(NO_LOOP, tmp_path, package_path) as process:
        assert asked(tmp_path) == 0
        process.kill()
        process.wait()
        assert asked(tmp_path) == 1
    assert "none of your programs " in capsys.readouterr().err


def test_what_is_not_watched_is_said_in_one_line(place, capsys):
    assert main(["health", str(os.getpid()), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"programs": []}
    assert main(["health", str(os.getpid())]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"loopcanary: process {os.getpid()} is not watched, does not run, or belongs to another"
    )
    assert main(["health", "--limit", "soon"]) == 2


def test_files_that_are_none_are_left_out(tmp_path):
    (tmp_path / f"loopcanary-{os.geteuid()}-damaged.flight").write_bytes(b"LCFLIGHT" + bytes(8_192))
    (tmp_path / f"loopcanary-{os.geteuid()}-empty.flight").write_bytes(b"")
    assert programs(shared_memory=tmp_path) == []


def test_a_probe_loads_neither_the_diagnosis_nor_a_store(place, package_path):
    code = (
        "import sys\nfrom loopcanary.cli import main\nmain(['health'])\n"
        "heavy = ('loopcanary.diagnosis', 'loopcanary.store', 'rich')\n"
        "print([one for one in sys.modules if one.startswith(heavy)])"
    )
    environment = {**os.environ, "PYTHONPATH": str(package_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
