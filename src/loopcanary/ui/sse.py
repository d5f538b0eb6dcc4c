"""Server-sent events: what changed, second by second, for as long as a page listens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
from anyio import to_thread

from loopcanary.ui.live import LOOK_EVERY_S, Now

_SILENT_MAX = 15
"""Seconds without news after which a comment is sent: a connection that is gone is noticed."""


async def events(
    look: Callable[[], Now],
    is_over: Callable[[], bool],
    is_gone: Callable[[], Awaitable[bool]],
    *,
    every_s: float = LOOK_EVERY_S,
) -> AsyncIterator[str]:
    """An event at once, and then whenever something is different. Ends with the server or the listener."""
    last: str | None = None
    silent = 0
    while not is_over() and not await is_gone():
        now = await to_thread.run_sync(look)
        data = json.dumps(
            {
                "version": now.version,
                "moving": now.moving,
                "running": now.running,
                "ongoing": len(now.ongoing),
            }
        )
        silent += 1
        if data != last:
            yield f"data: {data}\n\n"
            last, silent = data, 0
        elif silent >= _SILENT_MAX:
            yield ": still here\n\n"
            silent = 0
        await anyio.sleep(every_s)
