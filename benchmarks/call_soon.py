"""What a callback, a turn of the loop and a step of a task cost with loopcanary and without.

The figure is CPU time of the whole process, watchdog included: on a machine that others use too, wall time
would measure them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from harness import table
from harness.children import alternate, answer_all, pair, start_watching

BATCH = 1_000
ROUNDS = table.sized(40, 2)
PROCESSES = table.sized(3, 1)


async def batches(count: int) -> None:
    """Many callbacks a turn: what is left is the loop's own work and the callbacks."""
    loop = asyncio.get_running_loop()

    def callback() -> None:
        pass

    for _ in range(count // BATCH):
        for _ in range(BATCH):
            loop.call_soon(callback)
        await asyncio.sleep(0)


async def chain(count: int) -> None:
    """One callback a turn, so that each one also pays for a look at the selector."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    left = count

    def callback() -> None:
        nonlocal left
        left -= 1
        if left:
            loop.call_soon(callback)
        else:
            done.set_result(None)

    loop.call_soon(callback)
    await done


async def task_steps(count: int) -> None:
    """Steps of tasks, a hundred ready at a time."""

    async def steps() -> None:
        for _ in range(count // 100):
            await asyncio.sleep(0)

    await asyncio.gather(*(steps() for _ in range(100)))


WORK: dict[str, tuple[Callable[[int], object], int]] = {
    "callbacks": (batches, 50_000),
    "chain": (chain, 10_000),
    "task steps": (task_steps, 50_000),
}


def child(role: str) -> None:
    """Answers with the nanoseconds that one callback, turn or step took."""
    start_watching()
    work, count = WORK[role]

    def answer(_question: object) -> float:
        with asyncio.Runner() as runner:
            runner.run(work(100))
            begin = time.process_time_ns()
            runner.run(work(count))
            return (time.process_time_ns() - begin) / count

    answer_all(answer)


def measure() -> None:
    """Prints one row for each kind of work."""
    for role, budget in (("callbacks", 0.90), ("chain", 1.0), ("task steps", None)):
        figures: list[tuple[float, float]] = []
        for _ in range(PROCESSES):
            with pair(role) as (watched, plain):
                alternate(watched.ask, plain.ask, 2)  # caches and specialised bytecode become warm
                figures += alternate(watched.ask, plain.ask, ROUNDS // PROCESSES)
        ratio = table.Ratio.of(figures)
        note = f"{min(plain for _, plain in figures):.0f} ns without"
        if budget is None:
            table.told(f"{role}, with / without", ratio, note=note)
        else:
            table.ratio_at_most(f"{role}, with / without", ratio, budget, note=note)


if __name__ == "__main__":
    table.run(measure, child)
