"""Hubs that never wait, since the same greenlet gives way without waiting for anything."""

from __future__ import annotations

from tests.loops.spinning import assert_nothing_spins, assert_spins_are_told

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
    assert_spins_are_told(
        tmp_path, SPINS, "gevent", {"sleep_for_nothing (greenlet)", "wait_for_idleness (greenlet)"}
    )


def test_games_services_under_load_and_progress_do_not_spin(tmp_path):
    assert_nothing_spins(tmp_path, WAITS)
