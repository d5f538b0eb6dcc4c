"""An aiohttp service answers with a large compressed table, and its loop compresses it."""

from __future__ import annotations

import asyncio
import random
import string
import time
import urllib.request

from aiohttp import web

TABLE = "".join(random.Random(7).choices(string.ascii_letters, k=8_000_000)).encode()


async def table(_request: web.Request) -> web.Response:
    response = web.Response(body=TABLE, content_type="text/plain")
    response.enable_compression(web.ContentCoding.gzip)
    return response


async def health(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


def visit(url: str) -> int:
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return len(answer.read())


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    app = web.Application()
    app.add_routes([web.get("/table", table), web.get("/health", health)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    await asyncio.sleep(1)
    sizes = await asyncio.gather(
        asyncio.to_thread(visit, f"http://{host}:{port}/table"),
        asyncio.to_thread(visit, f"http://{host}:{port}/health"),
    )
    await asyncio.sleep(1)
    beats.cancel()
    await runner.cleanup()
    print(f"{sizes} bytes, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
