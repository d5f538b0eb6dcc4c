"""What a look at tasks costs: the watchdog's CPU time for it, by the number of tasks that wait.

The programs turn once and rest, so that the first look comes five seconds later.
"""

from __future__ import annotations

import asyncio
import time

from harness import table
from harness.children import child, start_watching, tell
from idle import WATCHDOG, Thread

BUDGETS_MS = {1_000: 5.0, 10_000: 50.0}
FIRST_S = table.sized(3.0, 0.5)
"""Until then the program has started, and the watchdog has parked."""
LOOK_S = table.sized(4.5, 0.3)


def program(role: str) -> None:
    """So many tasks that wait for an item each, five frames deep."""
    start_watching()
    asyncio.run(waiting(int(role)))


async def waiting(count: int) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()

    async def deep(levels: int) -> int:
        return await (deep(levels - 1) if levels else queue.get())

    tasks = [asyncio.create_task(deep(3)) for _ in range(count)]
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, ended.set)
    tell("ready")
    await ended.wait()
    for task in tasks:
        task.cancel()


def look_ms(count: int) -> float:
    """CPU time of the watchdog around the first look."""
    with child(str(count), watched=True) as started:
        time.sleep(FIRST_S)
        thread = Thread(started, WATCHDOG)
        before_ns = thread.cpu_ns()
        time.sleep(LOOK_S)
        return (thread.cpu_ns() - before_ns) / 1e6


def measure() -> None:
    """Prints what a look costs."""
    for count, budget in BUDGETS_MS.items():
        table.at_most(f"a look at {count:,} tasks: watchdog CPU", look_ms(count), budget, unit="ms")


if __name__ == "__main__":
    table.run(measure, program)
