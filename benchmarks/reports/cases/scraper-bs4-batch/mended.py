"""A search service loads the pages that a search found, and reads them in a thread."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web
from bs4 import BeautifulSoup


def make_page(seed: int) -> str:
    rng = random.Random(seed)
    rows = "".join(
        f'<tr class="row"><td><a href="/item/{rng.randrange(9999)}">item {number}</a></td>'
        f"<td><span><b>{rng.random():.4f}</b> of <i>{number}</i></span></td></tr>"
        for number in range(150)
    )
    return f"<html><head><title>page {seed}</title></head><body><table>{rows}</table></body></html>"


PAGES = {str(seed): make_page(seed) for seed in range(32)}


async def page(request: web.Request) -> web.Response:
    return web.Response(text=PAGES[request.match_info["name"]], content_type="text/html")


def extract(url: str, html: str) -> dict[str, str]:
    soup = BeautifulSoup(html, "html.parser")
    document = {"source": url, "title": soup.title.get_text(), "text": soup.get_text(" ", strip=True)}
    soup.decompose()
    return document


class WebLoader:
    def __init__(self, session: aiohttp.ClientSession, urls: list[str]) -> None:
        self.session = session
        self.urls = urls

    async def fetch(self, url: str) -> str:
        async with self.session.get(url) as answer:
            return await answer.text()

    async def alazy_load(self) -> AsyncIterator[dict[str, str]]:
        pages = await asyncio.gather(*(self.fetch(url) for url in self.urls))
        for url, html in zip(self.urls, pages):
            yield await asyncio.to_thread(extract, url, html)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    app = web.Application()
    app.add_routes([web.get("/{name}", page)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    async with aiohttp.ClientSession() as session:
        await asyncio.sleep(1)
        loader = WebLoader(session, [f"http://{host}:{port}/{name}" for name in PAGES])
        documents = [document async for document in loader.alazy_load()]
        await asyncio.sleep(1)
    beats.cancel()
    await runner.cleanup()
    print(f"{len(documents)} documents, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
