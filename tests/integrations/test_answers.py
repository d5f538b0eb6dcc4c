"""How long requests waited for the loop, from the arrival of their bytes: told by the kernel."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopcanary.integrations.uvicorn import ONE_OF

from .serving import GIVES_UP_S, PROGRAMS

TICK_S = 0.02
"""The kernel's clock of arrivals ticks each 10 ms at the most."""
BLOCKED_S = 0.25
QUICK = 2 * ONE_OF


def wait_for(path, child):
    gives_up = time.monotonic() + GIVES_UP_S
    while not path.exists():
        assert child.poll() is None, child.communicate()[0]
        assert time.monotonic() < gives_up
        time.sleep(0.005)


def connected(port, target="/"):
    """A request is on its way."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GIVES_UP_S)
    connection.request("GET", target)
    return connection


def answer_of(connection):
    with connection.getresponse() as answer:
        body = answer.read()
    connection.close()
    return body


def ask(port, target):
    assert answer_of(connected(port, target)) == b"ok"


@pytest.mark.parametrize(
    ("engine", "loop"),
    [
        pytest.param("native", "asyncio", marks=pytest.mark.native),
        pytest.param("native", "uvloop", marks=pytest.mark.native),
        ("portable", "asyncio"),
    ],
)
def test_a_request_that_arrives_while_the_loop_is_blocked_waits_from_then_on(watched, tmp_path, engine, loop):
    pytest.importorskip("uvicorn")
    if loop != "asyncio":
        pytest.importorskip(loop)
    one = watched(engine)
    child = subprocess.Popen(
        one.command(PROGRAMS / "web_lag.py", tmp_path, loop),
        env=one.environment(PYTHONWARNINGS="ignore"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for(tmp_path / "port", child)
        port = int((tmp_path / "port").read_text())
        for _ in range(QUICK):
            ask(port, "/")
        with ThreadPoolExecutor(1) as pool:
            blocking = pool.submit(ask, port, "/blocks")
            wait_for(tmp_path / "blocked", child)
            waiting = [connected(port) for _ in range(ONE_OF)]
            (tmp_path / "sent").touch()
            for connection in waiting:
                assert answer_of(connection) == b"ok"
            blocking.result()
        ask(port, "/stop")
        said, _ = child.communicate(timeout=GIVES_UP_S)
        assert child.returncode == 0, said
    finally:
        child.kill()
        child.wait()
    report = one.report()
    (figures,) = [
        each for session in report["sessions"] for each in session["input"] if each["loop"] == "requests"
    ]
    # Two of the quick ones, the one that blocks, and one of those that wait for it.
    assert figures["events"] == QUICK / ONE_OF + 2
    assert figures["worst_ms"] >= 1000 * BLOCKED_S
    assert figures["queued_ms"] >= 1000 * (BLOCKED_S - TICK_S)
    assert figures["lag_ms"] >= figures["queued_ms"] + 1000 * BLOCKED_S
    assert all(group["kind"] != "input-lag" for group in report["groups"])


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
def test_a_server_that_ends_by_the_signal_that_asked_it_to_has_stored_what_it_knew(watched, tmp_path, engine):
    pytest.importorskip("uvicorn", minversion="0.29")
    one = watched(engine)
    child = subprocess.Popen(
        one.command(PROGRAMS / "web_lag.py", tmp_path, "asyncio"),
        env=one.environment(PYTHONWARNINGS="ignore"),
    )
    try:
        wait_for(tmp_path / "port", child)
        ask(int((tmp_path / "port").read_text()), "/")
        child.terminate()
        assert child.wait(timeout=GIVES_UP_S) == -signal.SIGTERM
    finally:
        child.kill()
        child.wait()
    (session,) = one.report()["sessions"]
    assert session["end"] == "exit"
    assert [each["events"] for each in session["input"]] == [1]


SEEN_OF = 16
"""Of so many requests of other servers one is timed (native/core/answers.h)."""


def told_by(child, line=""):
    if line:
        child.stdin.write(line)
        child.stdin.flush()
    said = child.stdout.readline()
    assert said, "the servers have ended"
    return json.loads(said)


def ask_while_blocked(server, port, folder, child):
    """Three times as many requests as are needed for one to be timed: one of the quick ones, the one that
    blocks, one of those that wait for it."""
    for _ in range(SEEN_OF):
        ask(port, f"/{server}/quick")
    with ThreadPoolExecutor(1) as pool:
        blocking = pool.submit(ask, port, f"/{server}/blocks")
        wait_for(folder / f"{server} blocks", child)
        waiting = [connected(port) for _ in range(2 * SEEN_OF - 1)]
        (folder / f"{server} sent").touch()
        for connection in waiting:
            assert answer_of(connection) == b"ok"
        blocking.result()


@pytest.mark.native
@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "gevent", "thread"])
def test_answers_are_timed_whatever_the_server(watched, tmp_path, loop):
    if loop not in ("asyncio", "thread"):
        pytest.importorskip(loop)
    one = watched("native")
    child = subprocess.Popen(
        one.command(PROGRAMS / "answers.py", tmp_path, loop),
        env=one.environment(PYTHONWARNINGS="ignore"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    before = {"events": 0, "lag_ms": 0, "queued_ms": 0}
    try:
        for server, port in told_by(child).items():
            ask_while_blocked(server, port, tmp_path, child)
            (figures,) = told_by(child, "figures\n")
            more = {name: figures[name] - was for name, was in before.items()}
            assert more["events"] == 3, server
            assert more["lag_ms"] >= 2 * 1000 * (BLOCKED_S - TICK_S), server
            assert more["queued_ms"] >= 1000 * (BLOCKED_S - TICK_S), server
            before = {name: figures[name] for name in before}
        child.communicate(timeout=GIVES_UP_S)
        assert child.returncode == 0
    finally:
        child.kill()
        child.wait()
    (stored,) = [
        each
        for session in one.report()["sessions"]
        for each in session["input"]
        if each["loop"] == "requests"
    ]
    assert stored["thread"] == ("(threads)" if loop == "thread" else "MainThread")
    assert stored["events"] == before["events"]
    assert stored["worst_ms"] >= 1000 * BLOCKED_S
    assert stored["worst"] == ("GET" if loop in ("asyncio", "uvloop") else stored["worst"])


@pytest.mark.native
def test_more_than_there_was_room_for_is_not_looked_at(watched, tmp_path):
    one = watched("native")
    ended = subprocess.run(
        one.command(PROGRAMS / "answers_edge.py"),
        env=one.environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
