"""What is recorded beside samples: a turn's callbacks by name; thread and host from before; a loop's sums."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import gc
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.program.programs.blocking import slow, until_sampled

import loopcanary
from loopcanary.engine.native import NativeBackend
from loopcanary.flight import FlightFile
from loopcanary.model import StallEvidence, StallScope
from loopcanary.portable.backend import PortableBackend

THRESHOLD_NS = 1_000_000_000
WAITERS = 60
SCHEDSTAT = Path("/proc/self/schedstat")
needs_proc = pytest.mark.skipif(not SCHEDSTAT.exists(), reason="the kernel tells nothing of threads here")


@pytest.fixture
def evidence_of(watch, monkeypatch):
    """Runs main() and tells the evidence of each stall that it had, as the drain took it."""
    taken: list[StallEvidence] = []
    for backend in (NativeBackend, PortableBackend):  # before a drain may be in the middle of it
        monkeypatch.setattr(backend, "read", keeping(backend.read, taken))

    def run(main, **settings: str) -> list[StallEvidence]:
        async def watched():
            await asyncio.sleep(0)  # the engine runs from the first turn on
            taken.clear()
            _ends.clear()
            await main()

        with watch.installed(**settings) as canary:
            canary.take_over("a test")
            asyncio.run(watched())
        return [evidence for evidence in taken if evidence.end_ns is not None]

    return run


def keeping(read, taken):
    def keep(self):
        found = read(self)
        taken.extend(found)
        return found

    return keep


_ends: list[tuple[int, int]] = []
"""Of short callbacks, one after the other: when each was over, and how long it was asked to take."""


def skip_where_the_host_stopped_one(threshold_ns: int) -> None:
    """Such a callback is a stall by itself, which divides the turn (decision 0005)."""
    stops = [now - before - asked for (before, _), (now, asked) in pairwise(_ends)]
    if max(stops) >= threshold_ns:
        pytest.skip(f"the machine stopped a short callback for {max(stops) / 1e6:.0f} ms")


def wait_for_the_watchdog(goal: list[int]) -> None:
    """Keeps the turn busy until two samples were taken in it: the second one's look came after the wish of
    the first. Many are called one after the other, so that none is a stall by itself."""
    taken = loopcanary.statistics()["samples_taken"]
    goal or goal.append(taken + 2)
    if taken < goal[0]:
        time.sleep(0.05)
    _ends.append((time.monotonic_ns(), 50_000_000))


def spin(seconds: float) -> int:
    """Busy for `seconds`; returns how long it really was, in ns."""
    begin = time.monotonic_ns()
    while time.monotonic_ns() - begin < seconds * 1e9:
        pass
    end = time.monotonic_ns()
    _ends.append((end, round(seconds * 1e9)))
    return end - begin


def the_turn(evidence: list[StallEvidence]) -> StallEvidence:
    skip_where_the_host_stopped_one(THRESHOLD_NS)
    (turn,) = [one for one in evidence if one.contributors and one.scope is StallScope.TURN]
    return turn


def test_a_burst_has_names_counts_and_times(evidence_of):
    spent: dict[str, list[int]] = {}

    def work(kind: str) -> None:
        spent.setdefault(kind, []).append(spin(0.0012))

    def parse() -> None:
        work("parse")

    def render() -> None:
        work("render")

    class Shop:
        def store(self, _order: int) -> None:
            work("store")

    async def main():
        loop, shop, goal = asyncio.get_running_loop(), Shop(), []
        for _ in range(WAITERS):
            loop.call_soon(wait_for_the_watchdog, goal)
        for number in range(1000):
            loop.call_soon((parse, render, functools.partial(shop.store, number))[number % 3])
        await asyncio.sleep(0)

    turn = the_turn(evidence_of(main, threshold="1s", sample_delay="20ms"))

    prefix = "test_a_burst_has_names_counts_and_times.<locals>."
    found = {one.name.removeprefix(prefix): one for one in turn.contributors}
    own_task = "evidence_of.<locals>.run.<locals>.watched"
    assert set(found) - {own_task, "wait_for_the_watchdog"} == {"parse", "render", "Shop.store"}
    for name, kind in (("parse", "parse"), ("render", "render"), ("Shop.store", "store")):
        assert found[name].count == len(spent[kind])
        assert found[name].total_ns >= sum(spent[kind])
        assert max(spent[kind]) <= found[name].longest_ns < THRESHOLD_NS
    assert [len(times) for times in spent.values()] == [334, 333, 333]
    totals = [one.total_ns for one in turn.contributors]
    assert totals == sorted(totals, reverse=True)
    assert sum(totals) <= turn.turn_callback_ns
    assert turn.contributors_dropped == 0
    assert turn.begin_ns < turn.contributors_from_ns < turn.end_ns


def test_callbacks_of_every_kind_have_the_names_that_stalls_have(evidence_of):
    class Job:
        def __call__(self) -> None:
            pass

    async def fetch():
        spin(0.001)

    async def main():
        loop, goal, job, items = asyncio.get_running_loop(), [], Job(), []
        for _ in range(WAITERS):
            loop.call_soon(wait_for_the_watchdog, goal)
        tasks = [asyncio.create_task(fetch()) for _ in range(1100)]
        for number in range(7):
            loop.call_soon(items.append, number)
            loop.call_soon(job)
        loop.call_soon(asyncio.Event().set)
        await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    turn = the_turn(evidence_of(main, threshold="1s", sample_delay="20ms"))

    counts = {one.name.rpartition("<locals>.")[2]: one.count for one in turn.contributors}
    assert (counts["fetch"], counts["list.append"], counts["Job"], counts["Event.set"]) == (1100, 7, 7, 1)


def test_in_debug_mode_the_lines_that_scheduled_are_known(evidence_of):
    def tick() -> None:
        spin(0.001)

    async def fetch() -> None:
        spin(0.001)

    lines: dict[str, int] = {}

    async def main():
        loop, goal = asyncio.get_running_loop(), []
        loop.slow_callback_duration = 60.0  # asyncio's own warning is not the matter here
        loop.set_debug(True)
        for _ in range(WAITERS):
            loop.call_soon(wait_for_the_watchdog, goal)
        for _ in range(500):
            lines["often"] = sys._getframe().f_lineno + 1
            loop.call_soon(tick)
        for _ in range(100):
            lines["seldom"] = sys._getframe().f_lineno + 1
            loop.call_soon(tick)
        lines["made"] = sys._getframe().f_lineno + 1
        tasks = [asyncio.create_task(fetch()) for _ in range(600)]
        await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    turn = the_turn(evidence_of(main, threshold="1s", sample_delay="20ms"))

    found = {one.name.rpartition("<locals>.")[2]: one.scheduled for one in turn.contributors}
    assert [(one.line, one.count) for one in found["tick"]] == [(lines["often"], 500), (lines["seldom"], 100)]
    assert [(one.line, one.count) for one in found["fetch"]] == [(lines["made"], 600)]
    assert {one.file for one in (*found["tick"], *found["fetch"])} == {__file__}


def test_schedulers_are_unknown_without_debug_mode(evidence_of):
    async def main():
        loop, goal = asyncio.get_running_loop(), []
        for _ in range(WAITERS):
            loop.call_soon(wait_for_the_watchdog, goal)
        for _ in range(1100):
            loop.call_soon(spin, 0.001)
        await asyncio.sleep(0)

    turn = the_turn(evidence_of(main, threshold="1s", sample_delay="20ms"))

    assert next(one.count for one in turn.contributors if one.name == "spin") == 1100
    assert all(one.scheduled == () for one in turn.contributors)


def test_more_kinds_than_there_is_room_for_are_counted(evidence_of):
    names: dict[str, object] = {"spin": spin}
    exec("".join(f"def kind_{n}(): spin(0.001)\n" for n in range(50)), names)

    async def main():
        loop, goal = asyncio.get_running_loop(), []
        for _ in range(WAITERS):
            loop.call_soon(wait_for_the_watchdog, goal)
        for number in range(1100):
            loop.call_soon(names[f"kind_{number % 50}"])
        await asyncio.sleep(0)

    turn = the_turn(evidence_of(main, threshold="1s", sample_delay="20ms"))

    kinds = [one for one in turn.contributors if one.name.startswith("kind_")]
    assert 30 <= len(kinds) <= 32
    assert all(one.count == 22 for one in kinds)
    assert turn.contributors_dropped >= 22 * (50 - len(kinds))
    told = sum(one.count for one in turn.contributors)
    assert told + turn.contributors_dropped <= turn.turn_callbacks


def test_a_callback_that_stalls_alone_has_no_contributors(evidence_of):
    async def main():
        asyncio.get_running_loop().call_soon(slow)
        await asyncio.sleep(0)

    stalls = [one for one in evidence_of(main) if one.scope is StallScope.CALLBACK and one.samples]
    assert stalls
    assert all((one.contributors, one.contributors_from_ns) == ((), None) for one in stalls)


def test_what_is_left_of_a_turn_beside_its_stall_is_a_burst_of_its_own(evidence_of):
    def stall() -> None:
        taken = loopcanary.statistics()["samples_taken"]
        spin(0.8)
        while loopcanary.statistics()["samples_taken"] < taken + 2:
            spin(0.05)

    async def main():
        loop, goal = asyncio.get_running_loop(), []
        for _ in range(600):
            loop.call_soon(spin, 0.001)
        loop.call_soon(stall)
        for _ in range(WAITERS):
            loop.call_soon(wait_for_the_watchdog, goal)
        for _ in range(600):
            loop.call_soon(spin, 0.001)
        await asyncio.sleep(0)

    found = evidence_of(main, threshold="500ms", sample_delay="20ms")
    skip_where_the_host_stopped_one(500_000_000)
    [callback] = [one for one in found if one.scope is StallScope.CALLBACK]
    turns = (one for one in found if one.scope is StallScope.TURN and one.turn_callbacks >= 600)
    [before, after] = sorted(turns, key=lambda one: one.begin_ns)
    assert before.turn_callbacks == 600
    assert after.turn_callbacks == WAITERS + 600 + 1  # and the main task's step
    assert abs(before.end_ns - callback.begin_ns) < 1_000_000
    assert abs(after.begin_ns - callback.end_ns) < 1_000_000
    assert max(before.longest_callback_ns, after.longest_callback_ns) < 800_000_000
    assert all((one.name, one.count <= 600) == ("spin", True) for one in before.contributors)
    assert {one.name for one in after.contributors} >= {"spin", "wait_for_the_watchdog"}
    assert after.samples
    assert callback.samples


@needs_proc
def test_a_stall_has_earlier_readings_of_thread_and_host(evidence_of):
    async def main():
        looked = loopcanary.statistics()["watchdog_wakeups"] + 2
        while loopcanary.statistics()["watchdog_wakeups"] < looked:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)  # idle, so that there is something before
        slow()
        spin(0.05)

    stalls = [one for one in evidence_of(main) if one.samples and one.samples[0].kernel is not None]
    # A busy machine makes others, which nothing was read before.
    stall = max(stalls, key=lambda one: one.end_ns - one.begin_ns)
    assert stall.before.at_ns <= stall.begin_ns
    kernel = stall.samples[0].kernel
    assert stall.before.kernel.on_cpu_ns <= kernel.on_cpu_ns
    assert stall.before.kernel.run_queue_ns <= kernel.run_queue_ns
    first, *_, last = stall.host
    assert first.at_ns < last.at_ns
    assert first.process_cpu_ns < last.process_cpu_ns
    assert first.process_major_faults <= last.process_major_faults
    assert first.system_stolen_ns <= last.system_stolen_ns <= last.system_busy_ns
    assert first.system_busy_ns <= last.system_busy_ns <= last.system_total_ns
    assert last.memory_available_bytes > 0
    assert last.at_ns >= stall.end_ns


def test_a_loop_tells_what_became_of_its_time(watch):
    async def main():
        for seconds in until_sampled(0.3):
            spin(seconds)
        await asyncio.sleep(0)
        gc.collect()
        await asyncio.sleep(0.05)

    with watch.installed(threshold="100ms") as canary:
        asyncio.run(main())
        (loop,) = canary.loops()
        (told,) = canary.statistics()["loops"]
    assert loop.stalls >= 1
    assert 300_000_000 <= loop.stalled_ns <= loop.busy_ns
    assert loop.callback_weighted_ns > 100_000_000
    assert loop.slices >= 3
    assert 2 <= loop.slices_congested <= loop.slices
    assert 0 < loop.gc_ns < loop.busy_ns
    assert (loop.run_queue_ns is not None) == SCHEDSTAT.exists()
    assert 0 <= (loop.run_queue_ns or 0) < loop.window_ns
    assert (
        loop.delay_p50_ns <= loop.delay_p90_ns <= loop.delay_p99_ns <= loop.delay_p999_ns <= loop.delay_max_ns
    )
    assert (told["kind"], told["stalls"]) == ("asyncio", loop.stalls)


def test_a_kill_in_a_burst_keeps_its_callbacks_so_far(tmp_path, package_path):
    program = tmp_path / "killed.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(package_path)!r})\n"
        "import asyncio, os, signal, time\n"
        "import loopcanary\n"
        "watched = {'console': 'off', 'engine': 'native', 'threshold': '300ms', 'keeper': False}\n"
        "canary = loopcanary.install(store=sys.argv[1], **watched)\n"
        "begun = last = time.monotonic()\n"
        "late = []\n"
        "def parse():\n"  # none takes long, whenever samples are taken
        "    global begun, last\n"
        "    time.sleep(0.001)\n"
        "    before, last = last, time.monotonic()\n"
        "    if last - before > 0.2:\n"  # the host stopped: a stall of its own, and the burst begins anew
        "        begun = last\n"
        "        late.clear()\n"
        "    if last - begun > 0.6:\n"
        "        late.append(loopcanary.statistics()['samples_taken'])\n"
        "        if late[-1] >= late[0] + 2:\n"
        "            print(canary.backend.file, flush=True)\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "async def main():\n"
        "    await asyncio.sleep(0)\n"
        "    for _ in range(60_000): asyncio.get_running_loop().call_soon(parse)\n"
        "    await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, program, tmp_path / "store"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    file = Path(done.stdout.strip())
    with FlightFile.open(file) as flight:
        stalls = [evidence for _, evidence in flight.stalls()]
    file.unlink()

    (turn,) = [one for one in stalls if one.scope is StallScope.TURN and one.end_ns is None]
    counts = {one.name: one.count for one in turn.contributors}
    assert 0 < counts["parse"] <= 60_000


@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="the kernel does not tell of sleepers")
@pytest.mark.native
def test_a_hang_tells_which_threads_want_the_gil(evidence_of):
    over, begun = threading.Event(), threading.Event()

    def want_it():
        while not over.is_set():
            begun.set()
            time.sleep(0.05)

    async def main():
        eager.start()
        begun.wait()
        ctypes.PyDLL(None).usleep(6_000_000)  # with the GIL in hand; a look is due after a second
        over.set()

    eager = threading.Thread(target=want_it, name="eager")
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)  # one wait for the GIL, and not many in a row
    try:
        evidence = max(evidence_of(main), key=lambda one: one.end_ns - one.begin_ns)
    finally:
        sys.setswitchinterval(before)
        eager.join()
    found = {thread.tid: (thread.holds_gil, thread.waits_for_gil) for thread in evidence.threads}
    assert found[eager.native_id] == (False, True)
    assert found[threading.main_thread().native_id] == (True, False)
