"""A Sanic endpoint waits for something, and a browser with four tabs on it seems to be served one tab at a time."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from sanic import Request, Sanic
from sanic.response import HTTPResponse, text

app = Sanic("Tabs")


@app.get("/test")
async def test(_request: Request) -> HTTPResponse:
    print("got a request, waiting")
    await asyncio.sleep(0.8)
    print("    finished!")
    return text("done")


class Browser:
    """Asks for the same address again only when it has the answer, as browsers do to make use of their cache."""

    def __init__(self, host: str, port: int) -> None:
        self.connection = http.client.HTTPConnection(host, port, timeout=60)
        self.busy = threading.Lock()

    def tab(self, path: str) -> float:
        began = time.monotonic()
        with self.busy:
            self.connection.request("GET", path)
            self.connection.getresponse().read()
        return time.monotonic() - began

    def open_tabs(self, path: str, count: int) -> list[float]:
        with ThreadPoolExecutor(count) as tabs:
            return sorted(tabs.map(self.tab, [path] * count))


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(web: socket.socket) -> None:
    late: list[float] = []
    server = await app.create_server(sock=web, return_asyncio_server=True, access_log=False)
    await server.startup()
    await server.start_serving()
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(1)
    browser = Browser(*web.getsockname()[:2])
    took = await asyncio.to_thread(browser.open_tabs, "/test", 4)
    await asyncio.sleep(0.5)
    beats.cancel()
    print("tabs after", ", ".join(f"{seconds:.1f} s" for seconds in took))
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    app.config.MOTD = False
    asyncio.run(main(socket.create_server(("127.0.0.1", 0))))
