"""What each watcher prints, as it was printed once, and what is read from it."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

import pytest
from zoo import watchers
from zoo.observation import Frame, Report, frames_in
from zoo.watchers import (
    Run,
    aiocop,
    aiodebug,
    asyncio_debug,
    asyncio_event_loop_monitor,
    faulthandler_heartbeat,
    hanging_threads,
    livekit,
    loopcanary,
    loopsentry,
    pyleak,
)

SLEEP = Frame("/zoo/sleep.py", "wait_for_rate_limit", 13)
HANDLER = Frame("/zoo/sleep.py", "handler", 18)
STACK = """\
  File "/zoo/sleep.py", line 18, in handler
    wait_for_rate_limit()
  File "/zoo/sleep.py", line 13, in wait_for_rate_limit
    time.sleep(0.3)  # <- culprit
"""


@pytest.fixture
def run(tmp_path):
    return Run(program=Path("/zoo/sleep.py"), folder=tmp_path, python="python", environment={})


def told(run, text):
    run.stderr.extend((number, line) for number, line in enumerate(text.splitlines(keepends=True), start=1))


def test_every_watcher_says_how_to_run_it_and_what_it_is(run):
    for name in watchers.names():
        watcher = watchers.find(name)
        assert str(run.program) in watcher.command(run)
        assert isinstance(watcher.PACKAGE, str)


def test_every_package_is_pinned(tree):
    pinned = (tree / "benchmarks/zoo/requirements.txt").read_text()
    for name in watchers.names():
        package = watchers.find(name).PACKAGE
        assert package in {"", "loopcanary"} or f"\n{package}==" in pinned


@pytest.mark.parametrize(
    "text",
    [STACK, STACK.replace('File "', 'File: "'), STACK.replace(", in ", " in ")],
    ids=["python", "aiodebug", "faulthandler"],
)
def test_frames_of_a_stack(text):
    assert frames_in(text) == (HANDLER, SLEEP)


@pytest.mark.parametrize(
    ("surroundings", "queued"),
    [(None, 0.1), ({"stolen_cpu": None}, 0.1), ({"stolen_cpu": 0.05}, 0.1), ({"stolen_cpu": 0.4}, 0.4)],
    ids=["unknown", "not told", "less", "more"],
)
def test_loopcanary(surroundings, queued):
    culprit = {"function": "read_price", "file": "/zoo/lock_held.py", "line": 22}
    holder = {"function": "update_prices", "file": "/zoo/lock_held.py", "line": 18}
    stall = {
        "culprit": culprit,
        "holder": {"thread": "updater", "culprit": holder},
        "cause": "lock",
        "duration_ms": 300.5,
        "began_at": "2026-11-21T08:26:42.822906060Z",
        "ledger": {"run_queue_ms": 30.05},
        "surroundings": surroundings,
        "fingerprint": "3:0123456789ab",
        "advice": "Hold the lock for less.",
    }
    assert loopcanary.parse(stall) == Report(
        frames=(Frame("/zoo/lock_held.py", "read_price", 22),),
        causes=("lock",),
        holder=Frame("/zoo/lock_held.py", "update_prices", 18),
        thread="updater",
        duration_ms=300.5,
        began_ns=1795249602822906060,
        queued=queued,
        bug="3:0123456789ab",
        advice="Hold the lock for less.",
    )


def test_loopcanary_blames_the_machine():
    stall = {
        "culprit": None,
        "holder": None,
        "cause": "host",
        "duration_ms": 1,
        "began_at": "2026-11-21T08:26:42Z",
        "ledger": {"run_queue_ms": None},
        "fingerprint": "3:0123456789ab",
        "advice": None,
    }
    found = loopcanary.parse(stall)
    assert found.excused
    assert found.queued is None
    assert found.frames == ()


@pytest.mark.parametrize("said", ["", "Traceback (most recent call last):\n"])
def test_a_report_that_fails_is_not_an_empty_one(run, monkeypatch, said):
    ended = subprocess.CompletedProcess([], 1, stdout="", stderr=said)
    monkeypatch.setattr(loopcanary.subprocess, "run", lambda *_words, **_more: ended)
    with pytest.raises(subprocess.CalledProcessError) if said else contextlib.nullcontext():
        assert loopcanary.reports(run) == []


def test_asyncio_debug(run):
    told(
        run,
        "Executing <Task finished name='zoo' coro=<handler() done, defined at /zoo/sleep.py:16> result=None "
        "created at /lib/asyncio/tasks.py:420> took 0.301 seconds\n"
        "Executing <Handle handler.<locals>.on_readable() at /zoo/reader.py:28 created at /zoo/reader.py:33> "
        "took 1.500 seconds\n",
    )
    one, other = asyncio_debug.reports(run)
    assert one == Report(frames=(Frame("/zoo/sleep.py", "handler", 16),), duration_ms=301, told_ns=1)
    assert other.frames == (Frame("/zoo/reader.py", "handler.<locals>.on_readable", 28),)


def test_aiodebug(run):
    told(run, "Executing <Task pending coro=<handler() running at /zoo/sleep.py:18>> took 0.301 seconds\n")
    dumps = run.folder / "stacks"
    dumps.mkdir()
    stack = '\n# ThreadID: 1\nFile: "/zoo/sleep.py", line 13, in wait_for_rate_limit\n  time.sleep(0.3)'
    (dumps / "stacktrace-20261121-094154.197418-0.txt").write_text(stack)
    (dumps / "stacktrace-20261121-094155.206574-1.txt").write_text("after the hang")
    slow, hang = aiodebug.reports(run)
    assert slow.duration_ms == 301
    assert hang.frames == (SLEEP,)


def test_pyleak(run):
    told(
        run,
        "WARNING:pyleak.eventloop:Event loop blocked for 0.102s (threshold: 0.100s)\n"
        "WARNING:pyleak.eventloop:Detected 1 event loop blocks\n"
        "WARNING:pyleak.eventloop:Event Loop Block: block-1\n  Duration: 0.204s (threshold: 0.100s)\n"
        "  Timestamp: 1\n  Blocking Stack:\n" + STACK,
    )
    assert pyleak.reports(run) == [Report(frames=(HANDLER, SLEEP), duration_ms=204)]


def test_pyleak_that_was_killed_has_printed_no_stack(run):
    told(run, "WARNING:pyleak.eventloop:Event loop blocked for 0.102s (threshold: 0.100s)\n")
    assert pyleak.reports(run) == [Report(duration_ms=102, told_ns=1)]


def noted(run, **what):
    with (run.folder / "notes.jsonl").open("a") as file:
        file.write(json.dumps({"told_ns": 5} | what) + "\n")


def test_aiocop(run):
    text = "/zoo/sleep.py:13:wait_for_rate_limit <- /zoo/sleep.py:18:handler"
    noted(run, duration_ms=300.1, reason="io_blocking", events=["time.sleep(0.3)"], text=text)
    noted(run, duration_ms=200.0, reason="cpu_blocking", events=[], text="")
    slept, computed = aiocop.reports(run)
    assert slept == Report(frames=(SLEEP, HANDLER), causes=("sleep",), duration_ms=300.1, told_ns=5)
    assert computed.causes == ("cpu", "native-cpu")


@pytest.mark.parametrize(
    ("event", "word"),
    [
        ("socket.getaddrinfo(a)", "dns"),
        ("socket.connect(b)", "network-io"),
        ("open(c)", "disk-io"),
        ("odd", None),
    ],
)
def test_aiocop_names_audit_events(event, word):
    assert aiocop.words_for("io_blocking", [event]) == ((word,) if word else ())


def test_loopsentry():
    began = {"type": "block_started", "duration_current": 0.1, "stack": STACK.splitlines(keepends=True)}
    over = {"type": "block_resolved", "duration_total": 0.31}
    assert list(loopsentry.blocks_in([began, over, began])) == [
        Report(frames=(HANDLER, SLEEP), duration_ms=310),
        Report(frames=(HANDLER, SLEEP)),
    ]


def test_asyncio_event_loop_monitor(run):
    noted(run, name="__main__.wait_for_rate_limit", duration_ms=300.2)
    (found,) = asyncio_event_loop_monitor.reports(run)
    assert found == Report(frames=(Frame("", "wait_for_rate_limit"),), duration_ms=300.2, told_ns=5)


def test_hanging_threads(run):
    told(
        run,
        '----------Thread 140 "MainThread" hangs ----------\n'
        + STACK
        + '----------Thread 140 "MainThread" awaked----------\n'
        + '----------Thread 141 "other" hangs ----------\n',
    )
    assert hanging_threads.reports(run) == [
        Report(frames=(HANDLER, SLEEP), told_ns=1),
        Report(frames=(), told_ns=7),
    ]


def test_livekit(run):
    what = {"duration_s": 0.3, "began_ns": 1, "gc_s": 0, "cpu_s": 0, "descheduled": False, "importing": None}
    noted(run, **what, text="# loop thread sampled 80ms into the stall\n" + STACK)
    assert livekit.reports(run) == [Report(frames=(HANDLER, SLEEP), duration_ms=300, told_ns=5)]
    assert livekit.words_for(what | {"gc_s": 0.2}) == ("gc",)
    assert livekit.words_for(what | {"cpu_s": 0.2}) == ("cpu", "native-cpu")
    assert livekit.words_for(what | {"importing": "mailbox"}) == ("import",)
    assert livekit.words_for(what | {"descheduled": True}) == ("host",)


def test_faulthandler():
    dump = (
        "Timeout (0:00:00.100000)!\nThread 0x1 (most recent call first):\n"
        '  File "/zoo/sleep.py", line 13 in wait_for_rate_limit\n'
    )
    assert list(faulthandler_heartbeat.dumps_in(dump + dump)) == [Report(frames=(SLEEP,))] * 2
