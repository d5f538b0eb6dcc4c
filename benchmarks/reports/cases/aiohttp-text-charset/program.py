"""A crawler reads an old page and takes the links out of it."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp

LINK = re.compile(r'<a href="([^"]+)">')
WORDS = "и снова был тихий вечер над рекой где старый мельник ждал гостей из дальних деревень за лесом".split()
PAGE = "\n".join(
    f'<p><a href="/news/{number}">{WORDS[number % 17]} {WORDS[number % 13]}</a> {" ".join(WORDS[number % 11:])}</p>'
    for number in range(18_000)
).encode("windows-1251")


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.3)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_parts: object) -> None:
        pass


async def links(session: aiohttp.ClientSession, url: str) -> list[str]:
    async with session.get(url) as response:
        page = await response.text()
    return LINK.findall(page)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(url: str) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(1)
    async with aiohttp.ClientSession() as session:
        found = await links(session, f"{url}/news")
    await asyncio.sleep(1)
    beats.cancel()
    print(f"{len(PAGE)} bytes, {len(found)} links, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    asyncio.run(main(f"http://127.0.0.1:{site.server_address[1]}"))
