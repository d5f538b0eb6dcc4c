"""Hubs of gevent: which greenlet holds them up; whenever loopcanary comes and goes. Each in a program of its
own: a hub is its thread's for good, and gevent's patches are the process's."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.program.watching import PROGRAMS, is_by_the_host

# CPython warns from 3.12 on of a fork in a process of several threads: it takes greenlets for such.
STRICTLY = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")

BEGIN = """
import sys
sys.path.insert(0, {programs!r})
import gevent, loopcanary, _thread
from gevent import monkey
from blocking import slow, until_sampled
def install(**more):
    return loopcanary.install(store="store", console="off", engine="native", **more)
"""


@pytest.fixture
def play(tmp_path):
    """play(source): the program to its end; its stalls, oldest first: those of its own making, or `every`."""

    def run(source, first="", *, every=False):
        own = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        done = subprocess.run(
            [sys.executable, *STRICTLY, "-c", first + BEGIN.format(programs=str(PROGRAMS)) + source],
            capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path, env=own,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        report = subprocess.run(
            [sys.executable, "-m", "loopcanary", "report", "--store", "store", "--format", "json"],
            capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path, env=own,
        )  # fmt: skip
        found = json.loads(report.stdout)["stalls"] if report.returncode == 0 else []
        told = [stall for stall in found if every or (stall["samples"] and not is_by_the_host(stall))]
        return sorted(told, key=lambda stall: stall["began_at"])

    return run


def names(stalls):
    return [(stall["callback"]["name"], stall["thread"], stall["loop"]) for stall in stalls]


def test_a_greenlet_is_a_callback_by_its_function(play):
    stalls = play("""
install()
def hogs():
    gevent.sleep(0.01)
    slow()
    gevent.sleep(0.01)
gevent.joinall([gevent.spawn(hogs), gevent.spawn(gevent.sleep, 0.05)])
""")
    assert names(stalls) == [("hogs", "MainThread", "gevent")]
    assert stalls[0]["culprit"]["function"] == "slow"
    assert [frame["function"] for frame in stalls[0]["stacks"][0]["frames"]][:2] == ["slow", "hogs"]


def test_methods_and_greenlets_of_other_kinds(play):
    stalls = play("""
import greenlet
class Worker(gevent.Greenlet):
    def _run(self):
        slow()
class Jobs:
    def one(self):
        slow()
install()
gevent.sleep(0.01)
Worker.spawn().join()
gevent.spawn(Jobs().one).join()
greenlet.greenlet(slow).switch()
slow()
gevent.sleep(0.01)
""")
    assert [name for name, _, _ in names(stalls)] == ["Worker._run", "Jobs.one", "greenlet", "main greenlet"]


def test_callbacks_of_the_hub_s_own(play):
    stalls = play("""
install()
timer = gevent.get_hub().loop.timer(0.01)
timer.start(slow)
gevent.sleep(0.05)
""")
    assert [stall["culprit"]["function"] for stall in stalls] == ["slow"]


def test_installed_and_uninstalled_while_the_hub_runs(play):
    stalls = play("""
import greenlet
gevent.sleep(0.01)
hub_type = gevent.hub.Hub
plain = dict(vars(hub_type))
def named(name):
    def work():
        slow()
    work.__qualname__ = name
    gevent.spawn(work).join()
    gevent.sleep(0.001)
for name in ("first", "second"):
    install()
    named(name)
    loopcanary.uninstall()
    assert dict(vars(hub_type)) == plain
    assert greenlet.gettrace() is None
    from loopcanary import _native
    assert b"+call" not in _native.patches()
    named("between")
""")
    assert [name for name, _, _ in names(stalls)] == ["first", "second"]


def test_uninstalled_while_a_greenlet_is_asked_what_it_runs(play):
    play("""
from loopcanary import uninstall
ran, asked = [], []

class Job(gevent.Greenlet):
    @property
    def _run(self):
        if asked:
            uninstall()
        return lambda: ran.append(True)

install()
gevent.sleep(0.001)
job = Job()
job.start()
asked.append(job)
job.join()
assert ran == [True]
""")


def test_hubs_of_several_threads(play):
    stalls = play(
        """
import threading
def serve(name):
    def work():
        slow()
    work.__qualname__ = name
    gevent.spawn(work).join()
    gevent.get_hub().destroy()
install()
threads = [threading.Thread(target=serve, args=[f"work {i}"], name=f"thread {i}") for i in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""",
        every=True,
    )
    # Several that block at once may end with the samples of others: on a busy machine one may have none.
    blocked = [stall for stall in stalls if stall["duration_ms"] >= 150]
    assert {stall["thread"] for stall in blocked} == {f"thread {i}" for i in range(3)}
    sampled = [stall for stall in blocked if stall["samples"] and not is_by_the_host(stall)]
    assert {*names(sampled)} <= {(f"work {i}", f"thread {i}", "gevent") for i in range(3)}
    if all(stall["samples"] for stall in blocked):
        assert len(names(sampled)) == 3


def test_a_hub_of_another_thread_that_waits_already(play):
    stalls = play("""
import threading
waits, over = threading.Event(), threading.Event()
def work():
    slow()
def serve():
    gevent.sleep(0.01)
    hub = gevent.get_hub()
    hub.loop.run_callback(waits.set)
    while not over.is_set():
        gevent.sleep(0.01)
    gevent.spawn(work).join()
    gevent.sleep(0.01)
thread = threading.Thread(target=serve, name="server")
thread.start()
waits.wait()
install()
over.set()
thread.join()
""")
    # In the middle of a greenlet's run its hub cannot be found: then it is not watched.
    assert names(stalls) in ([("work", "server", "gevent")], [])


@pytest.mark.parametrize("order", ["patched first", "installed first"])
def test_patched_waits_are_no_stalls_and_ours_stay_what_they_are(play, order):
    patch = "from gevent import monkey; monkey.patch_all()\n"
    stalls = play(
        ("" if order == "patched first" else f"install(threshold='150ms')\n{patch}")
        + ("install(threshold='150ms')\n" if order == "patched first" else "")
        + """
import time, threading, queue, subprocess, socket
from gevent.hub import Hub
hubs, init = [], Hub.__init__
def __init__(self, *args, **more):
    hubs.append(_native_id())
    init(self, *args, **more)
_native_id = threading.get_native_id
Hub.__init__ = __init__
def waits():
    time.sleep(0.3)
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=0.2)
    subprocess.run(["sleep", "0.2"])
def turns():
    for _ in range(200):
        time.sleep(0.005)
def hogs():
    slow_for_real()
def slow_for_real():
    for seconds in until_sampled(0.3):
        monkey.get_original("time", "sleep")(seconds)
workers = [threading.Thread(target=waits), threading.Thread(target=turns)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
gevent.spawn(hogs).join()
gevent.sleep(0.5)
main = [worker for worker in hubs if worker != _native_id()]
loopcanary.uninstall()
assert main == [], main
""",
        first=patch if order == "patched first" else "",
    )
    assert names(stalls) == [("hogs", "MainThread", "gevent")]


def test_yielding_greenlets_are_a_burst_not_a_stall(play):
    stalls = play(
        """
import time
def part():
    # Too short to be a stall, and fifty of them are one.
    time.sleep(0.006)
def yields():
    for _ in range(100):
        part()
        gevent.sleep(0.0001)
bursts = []
@loopcanary.on_issue
def see(issue):
    if "part" in str(getattr(issue, "contributors", "")):
        bursts.append(issue)
    return issue
install(threshold="150ms")
yields()
gevent.sleep(0.01)
assert not bursts
# The hub looks at the time, and waits again, after fifty of them. Again and again: the watchdog needs a core.
while not bursts:
    gevent.joinall([gevent.spawn(part) for _ in range(100)])
    gevent.sleep(0.5)
""",
        every=True,  # on a busy machine each of them waits for a core, and the host is to blame
    )
    bursts = [stall for stall in stalls if "part" in str(stall["contributors"])]
    assert bursts
    assert {stall["cause"] for stall in bursts} <= {"burst", "host"}


def test_what_a_greenlet_raises_and_other_tracers(play):
    assert (
        play("""
import greenlet
events = []
def trace(event, args):
    events.append(event)
greenlet.settrace(trace)
install()
gevent.hub.Hub.NOT_ERROR += (ValueError,)  # nothing is printed of it
def fails():
    raise ValueError("on purpose")
try:
    gevent.spawn(fails).get()
except ValueError as error:
    assert [frame.name for frame in __import__("traceback").extract_tb(error.__traceback__)][-1] == "fails"
else:
    raise AssertionError
assert "switch" in events
seen = len(events)
gevent.sleep(0.01)
assert len(events) > seen
with gevent.Timeout(0.01, False):
    gevent.sleep(10)
killed = gevent.spawn(gevent.sleep, 10)
gevent.sleep(0)
killed.kill()
assert killed.successful()
loopcanary.uninstall()
assert greenlet.gettrace() is trace
""")
        == []
    )


def test_turns_are_seen_where_the_wait_cannot_be_hooked(play):
    stalls = play("""
from loopcanary import _native
_native.hook_waits = lambda where: ()
canary = install()
gevent.spawn(slow).join()
for _ in range(10):
    gevent.sleep(0.01)
(loop,) = [loop for loop in canary.loops() if loop.kind == "gevent"]
assert loop.turns >= 10, loop
assert loop.window_ns - loop.busy_ns >= 50_000_000, loop  # of ten waits of 10 ms
assert loop.stalls >= 1, loop
""")
    assert [name for name, _, _ in names(stalls)] == ["slow"]


@pytest.mark.parametrize("name", ["libev-cext", "libev-cffi", "libuv-cffi"])
def test_every_loop_of_gevent_s(play, name, monkeypatch):
    if name.endswith("cffi"):
        pytest.importorskip("cffi", reason="gevent reaches this loop through cffi, which is not installed")
    monkeypatch.setenv("GEVENT_LOOP", name)
    stalls = play("""
from loopcanary import _native
canary = install()
def hogs():
    slow()
gevent.spawn(hogs).join()
for _ in range(10):
    gevent.sleep(0.01)
calls = [line.split() for line in _native.patches().decode().split("\\n") if line.startswith("+call")]
assert {symbol for _, symbol, _, path in calls if "gevent" in path} & {"epoll_wait", "epoll_pwait"}, calls
(loop,) = canary.loops()
assert loop.turns >= 10, loop
assert loop.window_ns - loop.busy_ns >= 50_000_000, loop  # of ten waits of 10 ms
""")
    assert [name for name, _, _ in names(stalls)] == ["hogs"]


def test_waiting_for_threads_at_the_end_is_no_stall(play):
    assert (
        play("""
import threading, time
install()
gevent.sleep(0.01)
threading.Thread(target=time.sleep, args=[0.5]).start()
""")
        == []
    )


def test_uninstalled_before_another_threads_hub_was_reached(play):
    play("""
import threading
from loopcanary import _native
runs, leave = threading.Event(), threading.Event()
def blocks():  # in the hub's own greenlet
    runs.set()
    leave.wait()
def work():
    gevent.get_hub().loop.run_callback(blocks)
    gevent.sleep(0.01)  # whatever was left to the hub is done
    gevent.sleep(0.01)
thread = threading.Thread(target=work)
thread.start()
runs.wait()
install()
loopcanary.uninstall()
leave.set()
thread.join()
assert b"+call" not in _native.patches()
""")
