"""Hubs that never wait, since the same greenlet gives way without waiting for anything."""

from __future__ import annotations

import pytest
from tests.program.watching import Watched

SPINS = """
import gevent
import loopcanary

def is_told(name):
    return any(work["name"] == name for work in loopcanary.statistics().get("idle", ()))

def give_way(name, how):
    rounds = 0
    while rounds % 1000 or not is_told(name):
        rounds += 1
        how()

def sleep_for_nothing():
    give_way("sleep_for_nothing (greenlet)", lambda: gevent.sleep(0))

def wait_for_idleness():
    give_way("wait_for_idleness (greenlet)", gevent.idle)

gevent.spawn(sleep_for_nothing).join()
gevent.sleep(0.01)
gevent.spawn(wait_for_idleness).join()
"""

WAITS = """
import time
import gevent, gevent.server, gevent.socket

def echo(connection, address):
    while text := connection.recv(100):
        gevent.joinall([gevent.spawn(gevent.sleep, 0) for _ in range(5)])
        connection.sendall(text)

def ask(port, until):
    connection = gevent.socket.create_connection(("127.0.0.1", port))
    while time.monotonic() < until:
        connection.sendall(b"how are you?")
        connection.recv(100)
    connection.close()

def play(until):
    while time.monotonic() < until:
        gevent.sleep(1 / 60)

def make_progress(until):
    while time.monotonic() < until:
        step = min(until, time.monotonic() + 0.3)
        while time.monotonic() < step:
            gevent.sleep(0)
        gevent.sleep(0.01)

until = time.monotonic() + 1.2
server = gevent.server.StreamServer(("127.0.0.1", 0), echo)
server.start()
jobs = [gevent.spawn(play, until), gevent.spawn(make_progress, until)]
gevent.joinall(jobs + [gevent.spawn(ask, server.server_port, until) for _ in range(10)])
server.stop()
"""


def test_greenlets_that_give_way_without_end_are_told_by_name(tmp_path):
    watched = Watched(store=tmp_path / "store", engine="native")
    watched.run("-c", SPINS)
    report = watched.report()
    issues = {issue["handler"]: issue for issue in report["issues"]}
    assert set(issues) == {"sleep_for_nothing (greenlet)", "wait_for_idleness (greenlet)"}
    for issue in issues.values():
        assert (issue["kind"], issue["loop"], issue["thread"]) == ("idle", "gevent", "MainThread")
        assert issue["runs"] >= 1_000
        assert issue["duration_ms"] > 1_000
    (session,) = report["sessions"]
    assert {work["name"]: work["spun_ms"] for work in session["idle"]} == pytest.approx(
        {name: issue["duration_ms"] for name, issue in issues.items()}
    )


def test_games_services_under_load_and_progress_do_not_spin(tmp_path):
    watched = Watched(store=tmp_path / "store", engine="native")
    watched.run("-c", WAITS)
    report = watched.report()
    (session,) = report["sessions"]
    assert [issue["title"] for issue in report["issues"] if issue["kind"] == "idle"] == []
    assert session["idle"] == []
