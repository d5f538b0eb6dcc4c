"""How a remedy is said of a plain `def`, which cannot await: where its coroutine can, or how to become one."""

from __future__ import annotations

from collections.abc import Mapping

from loopcanary.words.remedies.remedy import Way

AROUND: Mapping[str, str] = {
    "in-coroutine": "In `{coroutine}` ({at}) use `{code}`.",
    "in-coroutine-or": "In `{coroutine}` ({at}) use `{code}`; or make `{function}` an `async def`{callers: } and {advice:inner}",
    "in-coroutine-itself": "In `{coroutine}` ({at}), {advice:inner}",
    "made-coroutine": "Make `{function}` an `async def`{callers: } that `{coroutine}` ({at}) awaits, and {advice:inner}",
    "in-a-task": "Let `{function}` start a task (`{code}`), since it cannot await; in the task, {advice:inner}",
    "made-or-task": "Make `{function}` an `async def` if its caller takes one, else let it start a task (`{code}`); there, {advice:inner}",
    "callers-too": "(its callers, too)",
}

ELSEWHERE: Mapping[str, Mapping[Way | None, str]] = {
    "asyncio": {
        None: "await asyncio.to_thread({call})",
        Way.PROCESS: "await loop.run_in_executor(process_pool, {call})",
        Way.PIECES: "await loop.run_in_executor(process_pool, {call})",
    },
    "trio": {
        None: "await trio.to_thread.run_sync({call})",
        Way.PROCESS: "await anyio.to_process.run_sync({call})",
        Way.PIECES: "await anyio.to_process.run_sync({call})",
    },
}
"""By loop and way, the code that runs a call elsewhere; None: of any other way. Loops that are not here have no
coroutines."""
TASKS: Mapping[str, str] = {"asyncio": "asyncio.create_task(...)", "trio": "nursery.start_soon(...)"}
"""By loop, the code that starts a task."""
