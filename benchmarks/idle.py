"""What the watchdog costs while nothing stalls: its wake-ups and its CPU time, from /proc.

An idle program: parked, no wake-up at all. A busy one whose callbacks are short: a look now and then.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from harness import table
from harness.children import Child, child, start_watching, tell

WATCHDOG = "loopcanary"
IDLE_S = table.sized(5.0, 0.3)
BUSY_S = table.sized(5.0, 0.3)


def program(role: str) -> None:
    """A loop that is idle, has timers, or always has a callback ready."""
    start_watching()
    asyncio.run(ROLES[role]())


async def idle() -> None:
    """Waits until its input ends."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, ended.set)
    tell("ready")
    await ended.wait()


async def timers() -> None:
    """A callback each millisecond."""
    loop = asyncio.get_running_loop()

    def callback() -> None:
        loop.call_later(0.001, callback)

    callback()
    await idle()


async def always_busy() -> None:
    """A callback each turn and never a wait."""
    loop = asyncio.get_running_loop()

    def callback() -> None:
        loop.call_soon(callback)

    callback()
    await idle()


ROLES = {"idle": idle, "timers": timers, "always busy": always_busy}


class Thread:
    """One thread of a child, as /proc shows it."""

    def __init__(self, child: Child, name: str) -> None:
        self._folder = next(
            task for task in Path(f"/proc/{child.pid}/task").iterdir()
            if (task / "comm").read_text().strip() == name
        )  # fmt: skip

    def wake_ups(self) -> int:
        """How often it has gone to sleep, which is as often as it woke."""
        status = dict(line.split(":", 1) for line in (self._folder / "status").read_text().splitlines())
        return int(status["voluntary_ctxt_switches"])

    def cpu_ns(self) -> int:
        """CPU time it has used."""
        return int((self._folder / "schedstat").read_text().split()[0])


def watch(thread: Thread, seconds: float) -> tuple[float, float]:
    """Wake-ups a second, and the percentage of a core used, over so many seconds."""
    wake_ups, cpu_ns, begin = thread.wake_ups(), thread.cpu_ns(), time.perf_counter_ns()
    time.sleep(seconds)
    took_ns = time.perf_counter_ns() - begin
    return (
        (thread.wake_ups() - wake_ups) / took_ns * 1e9,
        (thread.cpu_ns() - cpu_ns) / took_ns * 100,
    )


def measure() -> None:
    """Prints wake-ups and CPU of the watchdog for each kind of program."""
    with child("idle", watched=True) as started:
        time.sleep(table.sized(12.0, 1.5))  # it has looked at the tasks twice, and parks
        wake_ups, cpu = watch(Thread(started, WATCHDOG), IDLE_S)
    table.at_most("idle program: watchdog wake-ups", wake_ups, 0, unit="/s", note=f"{cpu:.4f} % of a core")
    for role in ("timers", "always busy"):
        with child(role, watched=True) as started:
            time.sleep(0.5)
            wake_ups, cpu = watch(Thread(started, WATCHDOG), BUSY_S)
        note = f"{wake_ups:.0f} wake-ups/s"
        table.at_most(f"short callbacks ({role}): watchdog CPU", cpu, 0.15, unit="% of a core", note=note)


if __name__ == "__main__":
    table.run(measure, program)
