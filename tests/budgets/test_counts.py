"""Budgets that are exact: what a callback and a sample cost, as counts that no load on the machine changes.

Each count is taken in a program of its own. Differences between a short and a long run of the same program
leave out what starting and stopping cost.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from loopcanary.flight import format as flight_format

pytestmark = pytest.mark.native

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program in a folder of its own and gives its output; the first arguments may be a launcher."""

    def run_program(program: str, *arguments: str, launcher: tuple[str, ...] = (), **settings: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        done = subprocess.run(
            [*launcher, sys.executable, "-c", textwrap.dedent(program), *arguments],
            env={**kept, "LOOPCANARY_STORE": str(tmp_path / "store"), **settings},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_program


# ---- a callback ------------------------------------------------------------------------------

ALLOCATIONS = """
    import asyncio, gc, importlib.util, json, sys

    spec = importlib.util.spec_from_file_location("allocation_probe", sys.argv[1])
    probe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(probe)
    import loopcanary

    def callback(*arguments):
        pass

    def counts():
        loop = asyncio.new_event_loop()
        found = {}

        def run_all(handles):
            for handle in handles:
                handle._run()

        def measure():
            gc.disable()
            later = loop.time()
            kinds = {
                "no arguments": lambda: asyncio.Handle(callback, (), loop),
                "two arguments": lambda: asyncio.Handle(callback, (1, 2), loop),
                "timer": lambda: asyncio.TimerHandle(later, callback, (), loop),
            }
            for kind, make in kinds.items():
                handles = [make() for _ in range(1000)]
                run_all(handles)  # the interpreter specialises, free lists fill
                found[kind] = probe.count(lambda: run_all(handles))
            # Not inside another callback, which would count for them all.
            handles.clear()
            gc.enable()

        measure()
        loop.close()
        return found

    plain = counts()
    loopcanary.install(console="off", threshold="10s")
    watched = counts()
    loopcanary.uninstall()
    print(json.dumps([plain, watched]))
"""


def test_a_callback_allocates_no_more_than_without_loopcanary(run: Run, allocation_probe_path: Path) -> None:
    plain, watched = json.loads(run(ALLOCATIONS, str(allocation_probe_path)))
    assert {kind for kind in plain if watched[kind] > plain[kind]} == set(), (plain, watched)


def test_a_callback_allocates_nothing(run: Run, allocation_probe_path: Path) -> None:
    _, watched = json.loads(run(ALLOCATIONS, str(allocation_probe_path)))
    # For a thousand callbacks no block but what counting itself may need: a call from C takes the callback's
    # frame from the interpreter's own stack.
    assert {kind for kind, blocks in watched.items() if blocks >= 10} == set(), watched


CALLBACKS = """
    import asyncio, os, sys
    import loopcanary

    loopcanary.install(console="off", threshold="10s")

    async def main(turns, callbacks):
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        os.getsid(0)  # a mark in the trace
        for _ in range(turns):
            for _ in range(callbacks):
                loop.call_soon(int)
            await asyncio.sleep(0)
        os.getsid(0)

    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
"""
# What the allocator asks of the kernel is the program's own, and how often it does so is chance.
MEMORY_CALLS = {"brk", "mmap", "munmap", "madvise", "mremap"}


def calls_between_marks(run: Run, trace: Path, turns: int, callbacks: int) -> Counter[str]:
    """System calls of the loop's thread, by name, but for memory."""
    run(CALLBACKS, str(turns), str(callbacks), launcher=("strace", "-f", "-o", str(trace)))
    lines = [line.split(maxsplit=1) for line in trace.read_text().splitlines()]
    main = lines[0][0]
    calls = [call.partition("(")[0] for thread, call in lines if thread == main and not call.startswith("<")]
    first = calls.index("getsid")
    last = calls.index("getsid", first + 1)
    return Counter(call for call in calls[first + 1 : last] if call not in MEMORY_CALLS)


def strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return tried.returncode == 0


@pytest.mark.skipif(not strace_works(), reason="needs strace, and permission to use it")
@pytest.mark.parametrize(("turns", "callbacks"), [(1, 10_000), (1_000, 1)])
def test_a_callback_makes_no_system_call_a_turn_its_wait(
    run: Run, tmp_path: Path, turns: int, callbacks: int
) -> None:
    calls = calls_between_marks(run, tmp_path / "trace", turns, callbacks)
    # A callback that the machine interrupts for a millisecond is named when it ends, by reads of memory.
    assert calls.pop("process_vm_writev", 0) == calls.pop("getpid", 0) < turns * callbacks / 2
    # A turn whose wait ends while another thread has the GIL waits for it.
    assert calls.pop("futex", 0) < turns * callbacks / 2
    assert calls in ({"epoll_wait": turns}, {"epoll_pwait": turns})


# ---- memory ----------------------------------------------------------------------------------

STALL = """
    import asyncio, os, sys, time
    from pathlib import Path
    import loopcanary

    canary = loopcanary.install(console="off", threshold="400ms", sample_delay="300ms", sample_interval="1ms")

    def file_bytes():
        (file,) = Path(os.environ["LOOPCANARY_STORE"]).rglob("*.flight")
        return file.stat().st_size, file.stat().st_blocks * 512

    async def main():
        before = file_bytes()
        time.sleep(float(sys.argv[1]))
        await asyncio.sleep(0.2)
        print(*before, *file_bytes())

    asyncio.run(main())
"""


# One for the stall; on a busy machine the program's start may be another one.
_TWO_SLOTS = 2 * flight_format.SLOT_BYTES


def test_the_flight_file_uses_disk_by_slots(run: Run) -> None:
    size, allocated, size_after, allocated_after = map(int, run(STALL, "0.5").split())
    assert size == size_after <= 8 << 20 | 1 << 19
    assert allocated <= (192 << 10) + flight_format.KEEPER_BYTES
    assert allocated_after - allocated <= _TWO_SLOTS


def test_a_sample_of_a_stack_that_is_known_is_128_bytes() -> None:
    assert flight_format.SAMPLE.size == 128


def test_a_long_stall_takes_no_more_room_than_a_short_one(run: Run) -> None:
    _, short, _, short_after = map(int, run(STALL, "0.5").split())
    _, long, _, long_after = map(int, run(STALL, "2").split())
    assert short_after - short <= _TWO_SLOTS
    assert long_after - long <= _TWO_SLOTS
