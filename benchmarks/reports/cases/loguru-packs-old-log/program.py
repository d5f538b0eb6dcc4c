"""A server of an online game writes its log with loguru: yesterday's file is packed when it is full."""

from __future__ import annotations

import asyncio
import pathlib
import random
import tempfile
import time

from aiohttp import ClientSession, web
from loguru import logger


def leave_old_log(path: pathlib.Path) -> None:
    """What the server wrote before it was restarted: almost 4 MB."""
    dice = random.Random(7)
    with path.open("w") as file:
        for number in range(40_000):
            file.write(f"2024-05-04 11:{number % 60:02} | INFO | move {number} to {dice.random()} {dice.random()} by p{dice.randrange(9999)}\n")


async def make_move(request: web.Request) -> web.Response:
    logger.info("player {} moves to {}", request.query["player"], request.query["field"])
    return web.json_response({"ok": True})


async def play(session: ClientSession, address: str) -> None:
    for turn in range(40):
        async with session.get(address, params={"player": turn % 4, "field": turn}) as answer:
            await answer.json()
        await asyncio.sleep(0.1)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    app = web.Application()
    app.router.add_get("/move", make_move)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/move"
    late: list[float] = []
    async with ClientSession() as session:
        beats = asyncio.create_task(heartbeat(late))
        await play(session, address)
        beats.cancel()
    await runner.cleanup()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "game.log")
        leave_old_log(log)
        logger.remove()
        logger.add(log, rotation=log.stat().st_size + 1000, compression="bz2")
        asyncio.run(main())
        logger.remove()
        print(sorted(path.suffix for path in pathlib.Path(folder).iterdir()))
