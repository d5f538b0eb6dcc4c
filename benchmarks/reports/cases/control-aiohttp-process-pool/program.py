"""An aiohttp server whose handler has a slow function run in a pool of processes, and a client that asks twice at once."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from aiohttp import ClientSession, web


def slow_func(number: int) -> int:
    """Computes for a second, at least."""
    began = time.perf_counter()
    while time.perf_counter() - began < 1:
        number = sum(place * number for place in range(20_000)) % 999_983
    return number


async def handle_request(request: web.Request) -> web.Response:
    loop = asyncio.get_running_loop()
    result = await loop.run_in_executor(request.app["pool"], slow_func, int(request.query["number"]))
    return web.Response(text=str(result))


async def ask(session: ClientSession, address: str, number: int) -> None:
    began = time.perf_counter()
    async with session.get(address, params={"number": number}) as answer:
        text = await answer.text()
    print(f"answer to {number} after {time.perf_counter() - began:.1f} s: {text}")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(pool: ProcessPoolExecutor) -> None:
    app = web.Application()
    app["pool"] = pool
    app.router.add_get("/", handle_request)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession() as session:
        beats = asyncio.create_task(heartbeat(late))
        for number in (3, 5):
            await asyncio.gather(ask(session, address, number), ask(session, address, number + 1))
        beats.cancel()
    await runner.cleanup()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as processes:
        asyncio.run(main(processes))
