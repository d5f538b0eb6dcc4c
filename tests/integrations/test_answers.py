"""How long requests waited for the loop, from the arrival of their bytes: told by the kernel."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from loopcanary.model.config import REQUESTS_ONE_OF as ONE_OF

from .h2_client import H2Connection
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


ANYBODY_S = ssl.create_default_context()
ANYBODY_S.check_hostname, ANYBODY_S.verify_mode = False, ssl.CERT_NONE
ANYBODY_S_H2 = ssl.create_default_context()
ANYBODY_S_H2.check_hostname, ANYBODY_S_H2.verify_mode = False, ssl.CERT_NONE
ANYBODY_S_H2.set_alpn_protocols(["h2"])


def connection_to(port, way="tcp"):
    if way == "tls":
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=GIVES_UP_S, context=ANYBODY_S)
    if way in ("h2c", "h2"):
        return H2Connection(port, GIVES_UP_S, ANYBODY_S_H2 if way == "h2" else None)
    return http.client.HTTPConnection("127.0.0.1", port, timeout=GIVES_UP_S)


def connected(port, target="/", way="tcp"):
    """A request is on its way."""
    connection = connection_to(port, way)
    connection.request("GET", target)
    return connection


def answer_of(connection):
    with connection.getresponse() as answer:
        body = answer.read()
    connection.close()
    return body


def ask(port, target, way="tcp"):
    assert answer_of(connected(port, target, way)) == b"ok"


@pytest.mark.parametrize(
    ("engine", "loop"),
    [
        pytest.param("native", "asyncio", marks=pytest.mark.native),
        pytest.param("native", "uvloop", marks=pytest.mark.native),
        ("portable", "asyncio"),
    ],
)
def test_a_request_waits_from_its_arrival_in_a_block(watched, tmp_path, engine, loop):
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


def test_an_answer_by_uvicorn_itself_is_timed_once(watched, tmp_path):
    pytest.importorskip("uvicorn")
    one = watched("portable")
    child = subprocess.Popen(
        one.command(PROGRAMS / "web_lag.py", tmp_path, "asyncio"),
        env=one.environment(PYTHONWARNINGS="ignore"),
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(tmp_path / "port", child)
        port = int((tmp_path / "port").read_text())
        for _ in range(ONE_OF + 1):
            assert answer_of(connected(port, "/fails")) == b"Internal Server Error"
        ask(port, "/stop")
        assert child.wait(timeout=GIVES_UP_S) == 0
    finally:
        child.kill()
        child.wait()
    (session,) = one.report()["sessions"]
    assert [each["events"] for each in session["input"]] == [2]


@pytest.mark.native
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_uvicorns_answers_behind_tls_are_timed(watched, tmp_path, loop):
    pytest.importorskip("uvicorn")
    pytest.importorskip(loop)
    one = watched("native")
    child = subprocess.Popen(
        one.command(PROGRAMS / "web_lag.py", tmp_path, loop, PROGRAMS / "localhost.pem"),
        env=one.environment(PYTHONWARNINGS="ignore"),
    )
    try:
        wait_for(tmp_path / "port", child)
        port = int((tmp_path / "port").read_text())
        for _ in range(ONE_OF + 1):
            ask(port, "/", "tls")
        ask(port, "/stop", "tls")
        assert child.wait(timeout=GIVES_UP_S) == 0
    finally:
        child.kill()
        child.wait()
    (session,) = one.report()["sessions"]
    assert [(each["events"], each["worst"]) for each in session["input"]] == [(2, "GET")]


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
def test_a_server_ended_by_sigterm_has_stored_its_figures(watched, tmp_path, engine):
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


def told_by(child, line=""):
    if line:
        child.stdin.write(line)
        child.stdin.flush()
    said = child.stdout.readline()
    assert said, "the servers have ended"
    return json.loads(said)


def ask_while_blocked(server, port, folder, child, way="tcp"):
    """Three times as many requests as are needed for one to be timed: one of the quick ones, the one that
    blocks, one of those that wait for it."""
    for _ in range(ONE_OF):
        ask(port, f"/{server}/quick", way)
    waiting = [connection_to(port, way) for _ in range(2 * ONE_OF - 1)]
    if way != "tcp":  # HTTP/2 has to be agreed on while the loop answers
        for connection in waiting:
            connection.connect()
    with ThreadPoolExecutor(1) as pool:
        blocking = pool.submit(ask, port, f"/{server}/blocks", way)
        wait_for(folder / f"{server} blocks", child)
        for connection in waiting:
            connection.request("GET", "/")
        (folder / f"{server} sent").touch()
        for connection in waiting:
            assert answer_of(connection) == b"ok"
        blocking.result()
    (folder / f"{server} blocks").unlink()
    (folder / f"{server} sent").unlink()


@contextmanager
def answering(watched, folder, loop, way, blocked_s):
    """Every server that runs on the loop; gives the child, and where they are reached."""
    if loop not in ("asyncio", "thread"):
        pytest.importorskip(loop)
    if loop == "trio":
        pytest.importorskip("hypercorn")
    child = subprocess.Popen(
        watched.command(PROGRAMS / "answers.py", folder, loop, way, blocked_s),
        env=watched.environment(PYTHONWARNINGS="ignore"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child, told_by(child)
        child.communicate(timeout=GIVES_UP_S)
        assert child.returncode == 0
    finally:
        child.kill()
        child.wait()


def figures_since(child, before):
    """What was timed since then: events, and milliseconds."""
    told = told_by(child, "figures\n")
    now = {name: sum(each[name] for each in told) for name in ("events", "lag_ms", "queued_ms")}
    more = {name: now[name] - before.get(name, 0) for name in now}
    return now, more


def assert_waited(child, before, blocked_s, server):
    """The answers that `ask_while_blocked` has had timed since then are as long as they must be: of one that
    blocked, and of one that waited meanwhile. Gives what there is now."""
    now, more = figures_since(child, before)
    assert more["events"] == 3, server
    assert more["lag_ms"] >= 2 * 1000 * (blocked_s - TICK_S), server
    assert more["queued_ms"] >= 1000 * (blocked_s - TICK_S), server
    return now


def inputs(watched):
    return [each for session in watched.report()["sessions"] for each in session["input"]]


def stored_requests(watched):
    return [each for each in inputs(watched) if each["loop"] == "requests"]


@pytest.mark.native
@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "gevent", "thread"])
def test_answers_are_timed_whatever_the_server(watched, tmp_path, loop):
    one = watched("native")
    before = {}
    with answering(one, tmp_path, loop, "tcp", BLOCKED_S) as (child, servers):
        for server, port in servers.items():
            ask_while_blocked(server, port, tmp_path, child)
            before = assert_waited(child, before, BLOCKED_S, server)
    (stored,) = stored_requests(one)
    assert stored["thread"] == ("(threads)" if loop == "thread" else "MainThread")
    assert stored["events"] == before["events"]
    assert stored["worst_ms"] >= 1000 * BLOCKED_S
    # What was being done; behind it what the server, whichever was the slowest, calls the request.
    assert stored["worst"].split()[0] == "GET"


SHORTLY_S = 0.1


@pytest.mark.native
@pytest.mark.parametrize(
    ("loop", "way"),
    [("asyncio", "h2c"), ("uvloop", "h2"), ("trio", "h2")],
)
def test_answers_over_http_2_are_timed(watched, tmp_path, loop, way):
    pytest.importorskip("hypercorn")
    one = watched("native")
    with answering(one, tmp_path, loop, way, SHORTLY_S) as (child, servers):
        ((server, port),) = servers.items()
        ask_while_blocked(server, port, tmp_path, child, way=way)
        _, more = figures_since(child, {})
        assert more["events"] == 3
    (stored,) = inputs(one)
    assert stored["loop"] == "HTTP/2 requests"
    assert stored["events"] == 3
    # Of those that wait, and the one for which they do.
    waiting = 1
    # What the client's kernel or library sends later makes a wait look shorter, on a busy machine by more.
    assert stored["queued_ms"] >= waiting * 1000 * SHORTLY_S / 2
    assert stored["lag_ms"] >= stored["queued_ms"] + 1000 * SHORTLY_S


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
