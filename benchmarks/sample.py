"""What one sample of a stalled thread costs: its stack of 50 frames, the GIL, and /proc.

The figures are the engine's own, sample_ns_total / samples_taken: the watchdog's wall time from its look at
the lane to the stored sample, as the mean of a stall. Of some stalls the least disturbed one counts, and the
median is told beside it, since whatever else runs on the machine is in a wall time too. Each frame is of a
function of its own. `at 10 ms` is what a program pays: the watchdog's caches are cold after 10 ms of other
work. `back to back` is as warm as the settings allow.

A working thread that is watched from its own core does not move while it is read. Watched from another core
it may run on; its stack is then read until two readings agree. `CPU` is the watchdog's CPU time for a
sample, wake-up and sleep included.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness import table
from harness.children import DRIVER_CPU, answer_all, child, start_watching

FRAMES = 50
STALL_S = 0.25
STALLS = table.sized(16, 1)
BUDGET_US = 30


def nested(template: str, innermost: str) -> Callable[[], object]:
    """The outermost of FRAMES functions, each of which calls the next; the last one does `innermost`."""
    source = "\n".join(
        template.format(number=number, inner=template_call(template, number + 1, innermost))
        for number in range(FRAMES)
    )
    names: dict[str, object] = {"block": block}
    exec(compile(source, "frames.py", "exec"), names)
    return names["f0"]  # type: ignore[return-value]


def template_call(template: str, number: int, innermost: str) -> str:
    """What function `number - 1` does: the call of the next, or the innermost thing."""
    if number == FRAMES:
        return innermost
    return f"await f{number}()" if template.startswith("async") else f"f{number}()"


def block(*, working: bool) -> None:
    """Holds the thread for one stall."""
    if not working:
        time.sleep(STALL_S)
        return
    end = time.monotonic() + STALL_S
    while time.monotonic() < end:
        pass


SYNC = "def f{number}():\n    value = {inner}\n    return value\n"
CORO = "async def f{number}():\n    value = {inner}\n    return value\n"
KINDS = {
    "functions, asleep": (SYNC, "block(working=False)"),
    "functions, working": (SYNC, "block(working=True)"),
    "functions, working elsewhere": (SYNC, "block(working=True)"),
    "coroutines, asleep": (CORO, "block(working=False)"),
}


ELSEWHERE = "functions, working elsewhere"


def native_thread(name: str) -> int:
    """The thread of this process that bears the name."""
    tasks = Path("/proc/self/task").iterdir()
    return next(int(task.name) for task in tasks if (task / "comm").read_text().strip() == name)


def cpu_ns(thread: int) -> int:
    """CPU time of a thread that does not run now."""
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0])


def program(role: str) -> None:
    """Answers a question with one stall, and then the counters and the watchdog's CPU time."""
    canary = start_watching()
    watchdog = native_thread("loopcanary")
    if role == ELSEWHERE:
        os.sched_setaffinity(watchdog, {DRIVER_CPU})
    template, innermost = KINDS[role]
    function = nested(template, innermost)

    async def stall() -> None:
        if template is CORO:
            await function()  # type: ignore[misc]
        else:
            function()

    def answer(_question: object) -> dict[str, int]:
        asyncio.run(stall())
        return {**canary.statistics(), "cpu_ns": cpu_ns(watchdog)}

    answer_all(answer)


class Cost(NamedTuple):
    """Microseconds a sample: of the least disturbed stall, in the median, and of CPU."""

    least_us: float
    median_us: float
    cpu_us: float
    samples: int
    dropped: int


def cost(role: str, interval: str) -> Cost:
    """Of some stalls after a first one."""
    with child(role, watched=True, sample_interval=interval, stalls_per_minute="100000") as started:
        answers = [started.ask() for _ in range(STALLS + 1)]
    taken, wall_us, cpu_us = [], [], []
    for before, after in itertools.pairwise(answers):
        if after["samples_taken"] == before["samples_taken"]:
            continue  # the machine was too busy to look even once
        taken.append(after["samples_taken"] - before["samples_taken"])
        wall_us.append((after["sample_ns_total"] - before["sample_ns_total"]) / taken[-1] / 1000)
        cpu_us.append((after["cpu_ns"] - before["cpu_ns"]) / taken[-1] / 1000)
    last = answers[-1]
    return Cost(
        least_us=min(wall_us),
        median_us=statistics.median(wall_us),
        cpu_us=min(cpu_us),
        samples=sum(taken),
        dropped=last["samples_dropped_moved"] + last["samples_dropped_unreadable"],
    )


def measure() -> None:
    """Prints the cost of a sample for each kind of stack, cold and warm."""
    for role in KINDS:
        for what, interval in (("back to back", "0.2ms"), ("at 10 ms", "10ms")):
            of = cost(role, interval)
            note = (
                f"median {of.median_us:.3g}, CPU {of.cpu_us:.3g}, {of.samples} samples, {of.dropped} dropped"
            )
            row = f"sample, {role}, {what}"
            if interval == "0.2ms" and role != ELSEWHERE:
                table.at_most(row, of.least_us, BUDGET_US, unit="us", note=note)
            else:
                table.told(row, f"{of.least_us:.3g} us", note=note)


if __name__ == "__main__":
    table.run(measure, program)
