"""A scanner logs each answer to a compressed file on a slow disk, behind a queue."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import pathlib
import queue
import tempfile
import time

import zstandard
from aiohttp import ClientSession, web

log = logging.getLogger("scanner")


class ZSTDHandler(logging.Handler):
    """Compresses what is logged, and waits until it is on the disk."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.file = zstandard.open(path, "wt", cctx=zstandard.ZstdCompressor(level=19))

    def emit(self, record: logging.LogRecord) -> None:
        self.file.write(self.format(record) + "\n")
        self.file.flush()
        time.sleep(0.15)

    def close(self) -> None:
        self.file.close()
        super().close()


async def answer_probe(request: web.Request) -> web.Response:
    return web.Response(text="7f 22 11 " * 40)


async def scan(session: ClientSession, address: str) -> None:
    for service in range(30):
        async with session.get(address, params={"service": service}) as answer:
            log.info("service %02x: %s", service, await answer.text())
        await asyncio.sleep(0.1)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    app = web.Application()
    app.router.add_get("/", answer_probe)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    late: list[float] = []
    async with ClientSession() as session:
        beats = asyncio.create_task(heartbeat(late))
        await scan(session, address)
        beats.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        handler = ZSTDHandler(pathlib.Path(folder, "scan.log.zst"))
        records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        log.addHandler(logging.handlers.QueueHandler(records))
        log.setLevel(logging.INFO)
        listener = logging.handlers.QueueListener(records, handler)
        listener.start()
        asyncio.run(main())
        listener.stop()
        handler.close()
