"""How far a stall's duration is from what the program's own clock says.

The callback reads CLOCK_MONOTONIC first and last; the stall's duration is of the callback as the loop sees
it, so a little longer. Several programs at once: they sleep, on purpose, inside a callback. On a machine with
other work to do the largest error shows a thread that was preempted between the two clocks' readings.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import Counter
from contextlib import ExitStack

from harness import table
from harness.children import child, start_watching, tell

PROGRAMS = table.sized(6, 1)
STALLS_EACH = table.sized(50, 2)
SHORTEST_MS, LONGEST_MS = 101, 500


def program(role: str) -> None:
    """Stalls, and tells how long by its own clock and how long by loopcanary's."""
    canary = start_watching()
    tell("ready")
    input()
    own = asyncio.run(stall(random.Random(int(role))))
    deadline = time.monotonic() + 10
    while len(canary.stalls) < len(own) and time.monotonic() < deadline:
        time.sleep(0.01)
    tell([own, [found.duration_ns for found in canary.stalls], canary.statistics()])


async def stall(chance: random.Random) -> list[int]:
    """Blocks the loop again and again; how long each time, in nanoseconds."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    own: list[int] = []

    def block() -> None:
        begin = time.monotonic_ns()
        time.sleep(chance.uniform(SHORTEST_MS, LONGEST_MS) / 1000)
        own.append(time.monotonic_ns() - begin)

    def next_one() -> None:
        if len(own) == STALLS_EACH:
            done.set_result(own)
        else:
            loop.call_soon(block)
            loop.call_later(0.005, next_one)

    next_one()
    return await done


def measure() -> None:
    """Prints the errors' 99th percentile and maximum, and how many stalls were missed."""
    with ExitStack() as stack:
        settings = {"stalls_per_minute": "100000"}
        children = [
            stack.enter_context(child(str(number), watched=True, **settings)) for number in range(PROGRAMS)
        ]
        for started in children:
            started.send()
        answers = [started.receive() for started in children]
    missed = sum(len(own) - len(found) for own, found, _ in answers)
    dropped = Counter[str]()
    for _, _, counters in answers:
        dropped.update(
            {name: count for name, count in counters.items() if "stalls_dropped" in name and count}
        )
    errors = [
        abs(seen - known) / 1e6
        for own, found, _ in answers if len(own) == len(found)
        for known, seen in zip(own, found, strict=True)
    ]  # fmt: skip
    made = PROGRAMS * STALLS_EACH
    table.at_most(f"stalls missed, of {made}", missed, 0, note=str(dict(dropped)) if dropped else "")
    note = f"median {statistics.median(errors) * 1000:.0f} us"
    most = statistics.quantiles(errors, n=100)[98]
    table.at_most("duration error, 99th percentile", most, 1, unit="ms", note=note)
    table.at_most("duration error, largest", max(errors), 1, unit="ms")


if __name__ == "__main__":
    table.run(measure, program)
