"""Real programs under the portable engine, each in its own process.

Lengths are of the program's own clock: a stall is no shorter than what the program timed inside it, and no
longer than what it timed around it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

_PRELUDE = """\
import asyncio, json, os, re, sys, threading, time
from loopcanary.portable.backend import PortableBackend
from loopcanary.model import Config

backend = PortableBackend(Config())
backend.start()
seen = []

def taken(count, timeout_s=20):
    while len(seen) < count and (backend.wait(timeout_s) or backend.wait(0)):
        seen.extend(backend.read())
    return seen

def run(main):
    loop = asyncio.new_event_loop()
    async def watched():
        backend.loops.started(loop, threading.get_ident())
        await asyncio.sleep(0.001)
        await main()
        await asyncio.sleep(0)
    global outside
    began = time.monotonic_ns()
    try:
        loop.run_until_complete(watched())
    finally:
        outside = time.monotonic_ns() - began
        backend.loops.stopped(loop)
        loop.close()

def block(action, *arguments):
    global blocked
    began = time.monotonic_ns()
    action(*arguments)
    blocked = began, time.monotonic_ns()
    return blocked[1] - began

def tell(**facts):
    print(json.dumps(facts), flush=True)

def lines(evidence):
    return [[[f.function, f.line] for f in s.stack.frames] for s in evidence.samples]

def times(evidence):
    return {"length": evidence.end_ns - evidence.begin_ns, "outside": outside, "lines": lines(evidence)}

def the_stall(late_ns=0):
    # The one that holds the block: where others take the CPU away, a turn without a block may be one, too.
    # `late_ns`: its begin may be seen so late.
    begin, end = blocked
    while not (found := [s for s in seen if s.begin_ns <= begin + late_ns and (s.end_ns or 0) >= end]):
        taken(len(seen) + 1)
    (stall,) = found
    return stall
"""


def program(text, *, ends="backend.stop()"):
    """Runs it; gives what it told."""
    outcome = subprocess.run(
        [sys.executable, "-c", _PRELUDE + textwrap.dedent(text) + "\n" + ends],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    return json.loads(outcome.stdout)


def assert_times_agree(told):
    """The turn holds the block, and the loop's run holds the turn."""
    assert told["truth"] <= told["length"] <= told["outside"]


def test_a_sleep_is_exact_and_seen_from_its_first_fifth():
    told = program(
        """
        def until_sampled():
            before = backend.statistics().get("samples", 0)
            time.sleep(0.3)
            while backend.statistics().get("samples", 0) < before + 5:
                time.sleep(0.02)
        async def main():
            global truth, began
            began = time.monotonic_ns()
            truth = block(until_sampled)
        run(main)
        stall = the_stall()
        inside = [began <= s.at_ns <= began + truth for s in stall.samples]
        tell(truth=truth, **times(stall), inside=inside, name=stall.names.name,
             task=stall.names.task, scope=stall.scope.value, kind=stall.loop_kind, thread=stall.thread_name,
             gil=[s.gil.value for s in stall.samples])
        """
    )
    assert_times_agree(told)
    assert len(told["lines"]) >= 5
    inside = [stack for stack, is_inside in zip(told["lines"], told["inside"], strict=True) if is_inside]
    chain = ("until_sampled", "block", "main")
    assert {tuple(name for name, _ in stack if name in chain) for stack in inside} == {chain}
    assert (told["name"], told["scope"]) == ("run.<locals>.watched", "callback")
    assert told["task"].startswith("Task-")
    assert (told["kind"], told["thread"]) == ("asyncio", "MainThread")
    assert "self" not in told["gil"]


def test_a_python_loop_moves_under_the_samples():
    told = program(
        """
        def compute():
            enough = backend.statistics().get("samples", 0) + 4
            while backend.statistics().get("samples", 0) < enough:
                compute_for(0.3)
        def compute_for(seconds):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                sum(range(50))
                max(range(50))
        async def main():
            global truth, spent, began
            spent = time.thread_time_ns()
            began = time.monotonic_ns()
            truth = block(compute)
            spent = time.thread_time_ns() - spent
        run(main)
        stall = the_stall()
        cpu = [s.kernel.on_cpu_ns for s in stall.samples if s.kernel]
        inside = [began <= s.at_ns <= began + truth for s in stall.samples]
        tell(truth=truth, **times(stall), inside=inside, cpu=cpu, spent=spent)
        """
    )
    assert_times_agree(told)
    assert len(told["lines"]) >= 2
    # On a crowded machine a sample may find the thread before the block or after it.
    inside = [stack for stack, is_inside in zip(told["lines"], told["inside"], strict=True) if is_inside]
    assert all({"compute", "block"} & {name for name, _ in stack} for stack in inside)
    assert "compute_for" in {stack[0][0] for stack in inside}
    if sys.platform.startswith("linux"):
        assert told["cpu"] == sorted(told["cpu"])
        assert 0 < told["cpu"][-1] - told["cpu"][0] <= told["spent"] + 5_000_000


def test_a_gil_holding_call_is_seen_late_at_its_line():
    told = program(
        """
        def search():
            re.match("(a+)+$", "a" * 24 + "b")
        async def main():
            global truth, cpu
            cpu = time.thread_time_ns()
            truth = block(search)
            cpu = time.thread_time_ns() - cpu
        run(main)
        stall = the_stall()
        tell(truth=truth, cpu=cpu, **times(stall),
             gil=[s.gil.value for s in stall.samples], dropped=dict(stall.samples_dropped))
        """
    )
    assert told["truth"] > 100_000_000
    assert_times_agree(told)
    assert told["dropped"]["late"] >= 1
    if not told["lines"]:
        # The watchdog had no core until the work was over, and what it saw then is no sample of it.
        assert told["dropped"]["moved"] == 1
        return
    assert "search" in [function for function, _ in told["lines"][-1]]
    # On a crowded machine the thread is off its CPU for a good part, and nobody can say who was to blame.
    if sys.platform.startswith("linux") and told["cpu"] > 0.9 * told["truth"]:
        assert "self" in told["gil"]


def test_an_anr_is_published_while_it_lasts_and_at_its_end():
    # The thread stalls until the watcher has the first news: nobody has to guess how long that takes.
    told = program(
        """
        released = threading.Event()
        def watcher():
            while not any(s.end_ns is None for s in seen):  # a busy machine may stall a turn before it
                taken(len(seen) + 1)
            released.set()
        thread = threading.Thread(target=watcher)
        thread.start()
        async def main():
            released.wait()
        run(main)
        thread.join()
        first = next(s for s in seen if s.end_ns is None)
        after = seen.index(first) + 1
        last = taken(after + 1)[after]
        tell(serials=[first.serial, last.serial], ends=[first.end_ns, last.end_ns],
             shown=first.last_look_ns - first.begin_ns, threads=[t.name for t in first.threads],
             count=len(first.samples))
        """
    )
    assert told["serials"][0] == told["serials"][1]
    assert told["ends"][0] is None
    assert told["ends"][1] is not None
    assert told["shown"] >= 5_000_000_000
    assert any(name.startswith("Thread-") for name in told["threads"])
    assert 10 <= told["count"] < 128  # some ninety where the watchdog gets to run as it wants


def test_work_on_any_thread_is_timed():
    told = program(
        """
        def job():
            backend.listener.work_begin("nightly")
            until_sampled(time.monotonic() + 0.2)
            backend.listener.work_end()
        def until_sampled(at_least):
            while time.monotonic() < at_least or not backend.statistics().get("samples"):
                time.sleep(0.02)
        thread = threading.Thread(target=job, name="worker")
        thread.start(); thread.join()
        (stall,) = taken(1)
        totals = backend.totals()
        tell(name=stall.names.name, thread=stall.thread_name, kind=stall.loop_kind, scope=stall.scope.value,
             lines=lines(stall), turns=[t.turns for t in totals],
             closed=[t.closed_ns is not None for t in totals])
        """
    )
    assert (told["name"], told["thread"], told["kind"]) == ("nightly", "worker", "thread")
    assert told["scope"] == "callback"
    assert "job" in [function for function, _ in told["lines"][0]]
    assert (told["turns"], told["closed"]) == ([1], [True])


def test_a_loop_that_ran_before_is_watched_from_its_next_turn_on():
    told = program(
        """
        loop = asyncio.new_event_loop()
        running, stalled = threading.Event(), threading.Event()
        def host():
            loop.call_soon(running.set)
            loop.run_forever()
        thread = threading.Thread(target=host, name="host")
        thread.start(); running.wait()
        backend.loops.started(loop, thread.ident)
        loop.call_soon_threadsafe(lambda: None)
        loop.call_soon_threadsafe(time.sleep, 0.001)
        def until_sampled():
            before = backend.statistics().get("samples", 0)
            time.sleep(0.2)
            while backend.statistics().get("samples", 0) == before:
                time.sleep(0.02)
        def stall():
            loop.call_later(0.001, block, until_sampled)
        began = time.monotonic_ns()
        loop.call_soon_threadsafe(stall)
        while "blocked" not in globals():
            time.sleep(0.01)
        stall = the_stall()
        outside = time.monotonic_ns() - began
        loop.call_soon_threadsafe(loop.stop); thread.join()
        backend.loops.stopped(loop)
        tell(thread=stall.thread_name, **times(stall), name=stall.names.name,
             select="select" in vars(loop._selector))
        """
    )
    assert told["thread"] == "host"
    assert told["name"] == "block"
    assert 200_000_000 <= told["length"] <= told["outside"]
    assert told["select"] is False


def test_a_loop_of_uvloop_is_timed_by_a_ticker():
    pytest.importorskip("uvloop")
    told = program(
        """
        import uvloop
        asyncio.new_event_loop = uvloop.new_event_loop
        async def main():
            global truth
            await asyncio.sleep(0.05)
            truth = block(until_sampled)
            await asyncio.sleep(0.05)
        def until_sampled():
            before = backend.statistics().get("samples", 0)
            time.sleep(0.3)
            while backend.statistics().get("samples", 0) == before:
                time.sleep(0.02)
        run(main)
        stall = the_stall(25_000_000)
        tell(truth=truth, **times(stall), kind=stall.loop_kind,
             turns=[t.turns for t in backend.totals()])
        """
    )
    assert (told["kind"], told["turns"]) == ("uvloop", [0])
    # The part before the tick was due is not seen: up to one period of 20 ms.
    assert told["truth"] - 25_000_000 < told["length"] <= told["outside"]
    assert "block" in [function for stack in told["lines"] for function, _ in stack]


def test_an_idle_loop_is_not_woken_and_the_watchdog_parks():
    told = program(
        """
        async def main():
            async def parked():
                while not backend.statistics()["watchdog_parks"]:
                    await asyncio.sleep(1.2)
            await parked()
            before = backend.statistics()["watchdog_rounds"], backend.totals()[0].turns
            await asyncio.sleep(2.0)
            global rounds, turns
            rounds = backend.statistics()["watchdog_rounds"] - before[0]
            turns = backend.totals()[0].turns - before[1]
            block(time.sleep, 0.2)
        run(main)
        tell(rounds=rounds, turns=turns, **times(the_stall()))
        """
    )
    assert told["turns"] <= 2
    # At most the second after the wake-up that ended the rest before it.
    assert told["rounds"] <= 60
    assert told["length"] <= told["outside"]


def test_a_thousand_loops_in_one_thread_take_one_lane():
    told = program(
        """
        async def main():
            pass
        for _ in range(1000):
            run(main)
        statistics = backend.statistics()
        tell(opened=statistics["lanes_opened"], refused=statistics["lanes_refused"],
             faults=statistics["lane_faults"] + statistics["watchdog_faults"], lanes=len(backend.totals()))
        """
    )
    assert told == {"opened": 1, "refused": 0, "faults": 0, "lanes": 1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_lets_go_of_its_parents_engine():
    told = program(
        """
        import gc, warnings
        warnings.simplefilter("ignore")
        async def main():
            loop = asyncio.get_running_loop()
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                backend.let_go()
                backend.stop()
                clean = "select" not in vars(loop._selector) and len(gc.callbacks) == callbacks
                os.write(write, b"1" if clean else b"0")
                os._exit(0)
            global answer
            answer = os.read(read, 1).decode()
            os.waitpid(pid, 0)
        callbacks = len(__import__("gc").callbacks) - 1
        run(main)
        tell(answer=answer)
        """
    )
    assert told == {"answer": "1"}


def test_it_starts_and_stops_without_a_trace():
    told = program(
        """
        import gc
        backend.stop(); backend.stop()
        threads, callbacks = threading.active_count(), len(gc.callbacks)
        backend = PortableBackend(Config())
        backend.start(); backend.start()
        during = threading.active_count()
        backend.stop()
        tell(threads=[threads, during, threading.active_count()], callbacks=[callbacks, len(gc.callbacks)])
        """
    )
    assert told["threads"] == [1, 2, 1]
    assert told["callbacks"][0] == told["callbacks"][1]


def test_what_it_cannot_see_is_said_in_sentences():
    from loopcanary.portable.blind_spots import BLIND_SPOTS

    assert len(BLIND_SPOTS) >= 5
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in BLIND_SPOTS)


def test_it_is_a_backend():
    from loopcanary.model import Config
    from loopcanary.portable.backend import PortableBackend

    backend = PortableBackend(Config())
    assert backend.name == "portable"
    assert backend.wait(0) is False
    backend.wake()
    assert backend.wait(None) is False
    assert list(backend.read()) == list(backend.totals()) == []
