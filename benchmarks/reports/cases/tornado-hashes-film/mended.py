"""A small film library: the browser asks for pieces of a film, Tornado serves them from the folder, without hashes of whole films."""

from __future__ import annotations

import asyncio
import os
import pathlib
import tempfile
import time

from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, StaticFileHandler

FILMS = {"harbour.mp4": 220, "lighthouse.mp4": 340, "tide.mp4": 280}


class Titles(RequestHandler):
    def get(self) -> None:
        self.write({"films": sorted(FILMS)})


class FilmHandler(StaticFileHandler):
    def compute_etag(self) -> None:
        return None

    @classmethod
    def get_content_version(cls, abspath: str) -> str:
        return "1"

    @classmethod
    def _get_cached_version(cls, abs_path: str) -> None:
        return None


def make_app(folder: str) -> Application:
    return Application(
        [
            (r"/", Titles),
            (r"/films/(.*)", FilmHandler, {"path": folder}),
        ]
    )


def make_films(folder: str) -> None:
    """Files of the size of films (with holes, so that they take no room)."""
    for name, megabytes in FILMS.items():
        path = pathlib.Path(folder, name)
        path.write_bytes(b"ftyp")
        os.truncate(path, megabytes << 20)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def watch(client: AsyncHTTPClient, address: str, name: str) -> None:
    """The first pieces, as a player asks for them."""
    began = time.perf_counter()
    for piece in range(4):
        wanted = {"Range": f"bytes={piece * 65536}-{piece * 65536 + 65535}"}
        answer = await client.fetch(f"{address}films/{name}", headers=wanted, request_timeout=120)
        if piece == 0:
            print(f"{name} ({answer.code}) begins after {time.perf_counter() - began:.2f} s")
        await asyncio.sleep(0.1)


async def main(folder: str) -> None:
    sockets = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(make_app(folder))
    server.add_sockets(sockets)
    address = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
    client = AsyncHTTPClient()
    print((await client.fetch(address)).body.decode())
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.5)
    for name in FILMS:
        await watch(client, address, name)
        await asyncio.sleep(0.3)
    beats.cancel()
    server.stop()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as films:
        make_films(films)
        asyncio.run(main(films))
