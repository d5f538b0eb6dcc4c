"""Where the zoo's programs play: a loop, a quiet time before and after, and the program's own clock.

A program also runs alone, as `PYTHONPATH=benchmarks python benchmarks/zoo/kinds/sleep.py`; it then prints
how long it stalled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any

from zoo import loops, truth

QUIET_S = 0.25
"""Before and after: long enough for a watcher to settle, and to tell what it saw."""
SKIPPED = 77
"""The exit status of a program that this machine does not let do what it is about."""

TRUTH = "ZOO_TRUTH"

around: Callable[[], contextlib.AbstractAsyncContextManager[Any]] = contextlib.nullcontext
"""What a watcher wants to stand around the program inside the loop; set by zoo.launch."""


def _truth_file() -> Path:
    if TRUTH in os.environ:
        return Path(os.environ[TRUTH])
    handle, name = tempfile.mkstemp(prefix="zoo-")
    os.close(handle)
    truth.create(Path(name))
    return Path(name)


_path = _truth_file()
_truth = truth.TruthWriter(_path)


class measured:  # noqa: N801 - reads as a word of the program
    """`with measured():` around all that a callback does: begin and end by the program's own clock."""

    def __enter__(self) -> None:
        begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        end(time.monotonic_ns())


def begin(at_ns: int | None = None) -> None:
    """The stall begins on this thread, now or then."""
    _truth.write(thread=threading.get_native_id(), began_ns=at_ns or time.monotonic_ns())


def end(at_ns: int) -> None:
    """The stall ended then, on this thread."""
    _truth.write(ended_ns=at_ns)


def skip(why: str) -> None:
    """Ends the program: the machine does not let it."""
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def sized(work: Callable[[int], Any], seconds: float, start: int = 1000) -> int:
    """The n for which work(n) computes for about `seconds`, where its time is proportional to n.

    By the thread's own time: what else the machine does must not make the work shorter. The first time, in
    which libraries load what they need, is not counted.
    """
    n = start
    work(n)
    while True:
        before = time.thread_time()
        work(n)
        took = time.thread_time() - before
        if took > 0.02:
            return max(1, int(n * seconds / took))
        n *= 4


def run(program: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs the program on the loop that is asked for, in a quiet loop."""
    loops.host().run(lambda: _quietly(program))
    if TRUTH not in os.environ:
        print(f"stalled for {truth.read(_path).duration_ms} ms")
        _path.unlink()


async def pause(seconds: float) -> None:
    """Lets the loop run for `seconds`, whichever loop it is."""
    await loops.host().pause(seconds)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Of the kind of loop that is asked for, one of asyncio's."""
    return getattr(loops.host(), "factory", None)


async def _quietly(program: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async with around():
        await pause(QUIET_S)
        _truth.write(plays_ns=time.monotonic_ns())
        await loops.host().call(program)
        await pause(QUIET_S)
        _truth.write(played_ns=time.monotonic_ns())


@contextlib.asynccontextmanager
async def child(
    *words: str, stdin: int = asyncio.subprocess.PIPE
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process beside the program, started without blocking, killed at the end."""
    process = await asyncio.create_subprocess_exec(*words, stdin=stdin)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
