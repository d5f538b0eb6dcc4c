"""An application on granian and asyncio that blocks its loop, once others' requests are handed over to it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

BLOCKED_S = 0.25
WAITING = 16


def handed_over():
    """Requests that the loop has not looked at yet."""
    handles = tuple(asyncio.get_running_loop()._ready)
    return sum(any(asyncio.iscoroutine(argument) for argument in each._args) for each in handles)


async def app(scope, receive, send):
    if scope["path"] == "/blocks":
        Path("blocks").touch()  # noqa: ASYNC240
        while handed_over() < WAITING:
            time.sleep(0.005)  # noqa: ASYNC251
        time.sleep(BLOCKED_S)  # noqa: ASYNC251
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
