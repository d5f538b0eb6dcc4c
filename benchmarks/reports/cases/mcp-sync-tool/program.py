"""A FastMCP server runs its plain function of a tool on the loop, which waits for a slow page."""

from __future__ import annotations

import asyncio
import http.server
import threading
import time

import requests
from mcp.server.fastmcp import FastMCP
from mcp.shared.memory import create_connected_server_and_client_session

server = FastMCP("pages")


class SlowPage(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(2.5)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 1000)

    def log_message(self, *_args: object) -> None:
        pass


@server.tool()
def page_size(url: str) -> int:
    """Tells how many bytes a page has."""
    return len(requests.get(url, timeout=30).content)


@server.tool()
async def ping() -> str:
    """Answers at once."""
    return "pong"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(url: str) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    async with create_connected_server_and_client_session(server) as client:
        await client.call_tool("ping")
        await asyncio.sleep(0.5)
        began = time.perf_counter()
        size, pong = await asyncio.gather(
            client.call_tool("page_size", {"url": url}),
            client.call_tool("ping"),
        )
        print(size.content[0].text, pong.content[0].text, f"after {time.perf_counter() - began:.1f} s")
        await asyncio.sleep(1)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowPage)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    asyncio.run(main(f"http://127.0.0.1:{site.server_port}/"))
