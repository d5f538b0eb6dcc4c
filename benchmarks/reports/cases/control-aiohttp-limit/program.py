"""A proxy asks a slow service for many recommendations at once, over one session of aiohttp with few connections."""

from __future__ import annotations

import asyncio
import time

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web


async def recommend(request: web.Request) -> web.Response:
    await asyncio.sleep(0.4)
    return web.json_response({"story": int(request.query["user"]) * 7})


async def fetch(session: ClientSession, address: str, user: int) -> float:
    began = time.perf_counter()
    async with session.get(address, params={"user": user}) as answer:
        await answer.json()
    return time.perf_counter() - began


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    app = web.Application()
    app.router.add_get("/", recommend)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession(connector=TCPConnector(limit=4), timeout=ClientTimeout(total=30)) as session:
        beats = asyncio.create_task(heartbeat(late))
        for _ in range(2):
            took = await asyncio.gather(*(fetch(session, address, user) for user in range(20)))
            print(f"fastest {min(took):.1f} s, slowest {max(took):.1f} s")
        beats.cancel()
    await runner.cleanup()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
