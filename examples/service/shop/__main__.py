"""Serves the shop on a free port of 127.0.0.1, and prints `ready PORT` once it does."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from pathlib import Path

from aiohttp import web

from shop.routes import make_app


async def serve(folder: Path) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    runner = web.AppRunner(make_app(folder), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print("ready", runner.addresses[0][1], flush=True)
    await stopping.wait()
    await runner.cleanup()


with tempfile.TemporaryDirectory(prefix="shop-") as name:
    asyncio.run(serve(Path(name)))
