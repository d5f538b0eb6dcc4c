"""`loopcanary.no_stall`: a block of code that must not stall a loop, for tests without pytest."""

from __future__ import annotations

import sys
from typing import Self

import loopcanary
from loopcanary.pytesting.limits import Limit, duration_ns, told
from loopcanary.pytesting.watch import TestsWatch


class no_stall:  # noqa: N801 - reads as a statement: with loopcanary.no_stall("20ms")
    """Watches the process during a block, and raises AssertionError after it if a callback of a loop took
    as long as that, with the verdict as text.

    `with` goes around what runs the loop; in a coroutine of asyncio `async with` lets the callback end before
    it looks. A block that raises by itself does not raise a second time. Stalls of a busy host do not count.

    Args:
        longest: the shortest stall that raises: "20ms".

    Raises:
        ValueError: it is no duration.
        RuntimeError: the process is watched already, or `with` is used where a loop runs.
    """

    __slots__ = ("_limit", "_watch")

    def __init__(self, longest: str) -> None:
        limit_ns = duration_ns(longest, "no_stall")
        self._limit = Limit(limit_ns)
        self._watch = TestsWatch(limit_ns, None)

    def __enter__(self) -> Self:
        if _a_loop_runs():
            raise RuntimeError("a loop runs here: in coroutines use `async with loopcanary.no_stall(...)`")
        self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(is_failed=kind is not None)

    async def __aenter__(self) -> Self:
        self._begin()
        await _one_turn()
        self._watch.new_stalls()  # what it took to begin
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await _one_turn()
        self._end(is_failed=kind is not None)

    def _begin(self) -> None:
        if loopcanary._canary is not None:  # noqa: SLF001 - of this package
            raise RuntimeError("this process is already watched: no_stall needs one that is not")
        self._watch.start()

    def _end(self, *, is_failed: bool) -> None:
        try:
            broken = self._limit.broken_by(self._watch.new_stalls(), frozenset())
        finally:
            self._watch.stop()
        if broken and not is_failed:
            raise AssertionError(told(broken))


async def _one_turn() -> None:
    import asyncio

    await asyncio.sleep(0)


def _a_loop_runs() -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None  # noqa: SLF001 - the others raise
