"""A scraper searches a page with regex in an executor, whose thread releases the GIL."""

from __future__ import annotations

import asyncio
import random
import time

import aiohttp
import regex
from aiohttp import web

EMAIL = regex.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")


def words() -> str:
    chance = random.Random(3)
    kinds = ["user", "contact", "a" * 30, "news.letter", "x-y_z", "me@shop.test"]
    return " ".join(chance.choices(kinds, weights=[20, 20, 20, 20, 19, 1], k=240_000))


PAGE = words()


async def page(_request: web.Request) -> web.Response:
    return web.Response(text=PAGE)


async def excavate(session: aiohttp.ClientSession, url: str) -> set[str]:
    async with session.get(url) as response:
        raw = await response.read()
    text = await asyncio.to_thread(raw.decode)
    found = await asyncio.get_running_loop().run_in_executor(None, EMAIL.findall, text)
    return set(found)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    app = web.Application()
    app.add_routes([web.get("/", page)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    await asyncio.sleep(0.5)
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            print(await excavate(session, f"http://{host}:{port}/"))
            await asyncio.sleep(0.5)
    beats.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
