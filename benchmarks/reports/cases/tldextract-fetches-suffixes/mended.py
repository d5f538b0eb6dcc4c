"""A crawler that groups its links by domain with tldextract, where the list of suffixes is a file beside it."""

from __future__ import annotations

import asyncio
import pathlib
import tempfile
import time

import tldextract
from aiohttp import ClientSession, web

SUFFIXES = """
// ===BEGIN ICANN DOMAINS===
com
org
uk
co.uk
// ===END ICANN DOMAINS===
"""


async def show_page(request: web.Request) -> web.Response:
    return web.json_response([f"https://www.shop{number}.co.uk/{request.query['page']}" for number in range(5)])


async def crawl(session: ClientSession, address: str, extract: tldextract.TLDExtract) -> dict[str, int]:
    domains: dict[str, int] = {}
    for page in range(20):
        async with session.get(address, params={"page": page}) as answer:
            for link in await answer.json():
                found = extract(link)
                name = f"{found.domain}.{found.suffix}"
                domains[name] = domains.get(name, 0) + 1
        await asyncio.sleep(0.1)
    return domains


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(extract: tldextract.TLDExtract) -> None:
    app = web.Application()
    app.router.add_get("/", show_page)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession() as session:
        beats = asyncio.create_task(heartbeat(late))
        await asyncio.sleep(0.3)
        print(await crawl(session, address, extract))
        beats.cancel()
    await runner.cleanup()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        file = pathlib.Path(cache, "public_suffix_list.dat")
        file.write_text(SUFFIXES)
        asyncio.run(main(tldextract.TLDExtract(cache_dir=cache, suffix_list_urls=(file.as_uri(),))))
