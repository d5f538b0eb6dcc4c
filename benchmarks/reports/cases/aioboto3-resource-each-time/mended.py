"""A service hands out files from S3, and opens the bucket once."""

from __future__ import annotations

import asyncio
import http.server
import threading
import time
from collections.abc import AsyncIterator

import aioboto3
import aiohttp
from aiohttp import web


class Bucket(http.server.BaseHTTPRequestHandler):
    """Stands for S3: every object is a few kilobytes."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.path.encode() * 100
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


def start_bucket() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def open_s3(endpoint: str) -> object:
    session = aioboto3.Session(aws_access_key_id="local", aws_secret_access_key="local")
    return session.resource("s3", region_name="eu-west-1", endpoint_url=endpoint)


async def share_s3(app: web.Application) -> AsyncIterator[None]:
    async with open_s3(app["endpoint"]) as s3:
        app["s3"] = s3
        yield


async def download(request: web.Request) -> web.Response:
    item = await request.app["s3"].Object("reports", request.match_info["key"])
    answer = await item.get()
    return web.Response(body=await answer["Body"].read())


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def visit(visitor: aiohttp.ClientSession, url: str) -> int:
    async with visitor.get(url) as answer:
        answer.raise_for_status()
        return len(await answer.read())


async def main() -> None:
    app = web.Application()
    app["endpoint"] = start_bucket()
    app.cleanup_ctx.append(share_s3)
    app.router.add_get("/download/{key}", download)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/download/"
    async with aiohttp.ClientSession() as visitor:
        await visit(visitor, address + "first.txt")
        late: list[float] = []
        beats = asyncio.create_task(heartbeat(late))
        for month in range(3):
            await asyncio.sleep(0.3)
            urls = [f"{address}{month}-{day}.txt" for day in range(5)]
            print(await asyncio.gather(*(visit(visitor, url) for url in urls)))
        beats.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
