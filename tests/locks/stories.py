"""Runs a program of asyncio in virtual time, and gives what the tracer of locks reports of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import pytest

from loopcanary.probes import ImportWatch
from loopcanary.tracers.locks.tracer import LockTracer

Story = Callable[[], Awaitable[object]]


class _Selector:
    """Does not sleep: moves the clock of its loop."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.now = 0.0

    def select(self, timeout: float | None) -> Any:
        self.now += max(timeout or 0, 0)
        return self._real.select(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only while it waits."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector(self._selector)

    def time(self) -> float:
        return self._selector.now


class Desk:
    """What was reported; an error of the tracer's is one of the test's."""

    def __init__(self) -> None:
        self.issues: list[Any] = []
        self.errors: list[Exception] = []

    def report(self, issue: Any) -> bool:
        self.issues.append(issue)
        return True

    def failed(self, error: Exception) -> None:
        self.errors.append(error)


def reported(story: Story, seconds: float = 60, *, started: Callable[[LockTracer], object] = id) -> list[Any]:
    """The issues of a story that has this long. `started` gets the tracer."""

    async def main() -> None:
        task = asyncio.create_task(_run(story), name="main")
        await asyncio.sleep(seconds)
        with contextlib.suppress(RecursionError):
            task.cancel()

    return _watched(lambda loop: loop.run_until_complete(main()), started)


def reported_of_main(story: Story, seconds: float = 200) -> list[Any]:
    """As `reported`, where the story is the loop's main task, as that of `asyncio.run`."""

    def run(loop: Any) -> None:
        loop.call_later(seconds, loop.stop)
        with (
            contextlib.suppress(
                RuntimeError, asyncio.CancelledError
            ),  # it is stopped before the task is complete
            asyncio.Runner(loop_factory=lambda: loop) as runner,
        ):
            runner.run(story())

    return _watched(run)


def _watched(run: Callable[[Any], object], started: Callable[[LockTracer], object] = id) -> list[Any]:
    desk, loop = Desk(), VirtualLoop()
    tracer = LockTracer(
        lambda file: file.startswith(_HERE), ImportWatch, now_ns=lambda: int(loop.time() * 1e9)
    )
    tracer.init(desk)
    tracer.start()
    started(tracer)

    try:
        run(loop)
        if loop.is_closed():
            return desk.issues
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with contextlib.suppress(RecursionError):  # they wait for each other
                task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        tracer.stop()
        loop.close()
        assert desk.errors == []
    return desk.issues


def told_with(library: Any, stories: Iterable[Callable[[Any], Awaitable[object]]]) -> list[Any]:
    """As parameters of a test, each with its name."""
    return [pytest.param(partial(story, library), id=getattr(story, "__name__", "")) for story in stories]


async def _run(story: Story) -> None:
    await story()


_HERE = __file__.rpartition("/")[0]
