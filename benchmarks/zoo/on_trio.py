"""The zoo's programs on trio: those that use nothing of asyncio's."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import trio

Program = Callable[[], Coroutine[Any, Any, None]]


def play(program: Program, quiet_s: float, plays: Callable[[], None], played: Callable[[], None]) -> None:
    """Runs the program as a task of its own, with a quiet time before and after; tells when it plays."""

    async def quietly() -> None:
        await trio.sleep(quiet_s)
        plays()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(program, name="zoo")
        await trio.sleep(quiet_s)
        played()

    trio.run(quietly)
