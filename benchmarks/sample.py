"""What one sample of a stalled thread costs: its stack of 50 frames, the GIL, and /proc.

The figures are the engine's own, sample_ns_total / samples_taken: the watchdog's wall time from its look at
the lane to the stored sample. Each frame is of a function of its own. `at 10 ms` is what a program pays: the
watchdog's caches are cold after 10 ms of other work. `back to back` is as warm as the settings allow.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from harness import table
from harness.children import answer_all, child, start_watching

FRAMES = 50
STALL_S = 0.4
STALLS = 8
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
    "coroutines, asleep": (CORO, "block(working=False)"),
}


def program(role: str) -> None:
    """Answers a question with one stall and the counters after it."""
    canary = start_watching()
    template, innermost = KINDS[role]
    function = nested(template, innermost)

    async def stall() -> None:
        if template is CORO:
            await function()  # type: ignore[misc]
        else:
            function()

    def answer(_question: object) -> dict[str, int]:
        asyncio.run(stall())
        return canary.statistics()

    answer_all(answer)


def cost(role: str, interval: str) -> tuple[float, dict[str, int]]:
    """Microseconds a sample, over some stalls after a first one, and the counters at the end."""
    with child(role, watched=True, sample_interval=interval, stalls_per_minute="100000") as started:
        before = started.ask()
        for _ in range(STALLS):
            after = started.ask()
    taken = after["samples_taken"] - before["samples_taken"]
    took = after["sample_ns_total"] - before["sample_ns_total"]
    return took / taken / 1000, after


def measure() -> None:
    """Prints the cost of a sample for each kind of stack, cold and warm."""
    for role in KINDS:
        warm_us, after = cost(role, "0.2ms")
        moved = after["samples_dropped_moved"] + after["samples_dropped_unreadable"]
        note = f"{after['samples_taken']} samples, {moved} dropped"
        table.at_most(f"sample, {role}, back to back", warm_us, BUDGET_US, unit="us", note=note)
        cold_us, _ = cost(role, "10ms")
        table.told(f"sample, {role}, at 10 ms", f"{cold_us:.3g} us")


if __name__ == "__main__":
    table.run(measure, program)
