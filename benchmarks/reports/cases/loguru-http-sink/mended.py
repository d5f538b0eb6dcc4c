"""A bot whose log goes to the operators' channel too, through a webhook."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from loguru import logger


class Webhook(BaseHTTPRequestHandler):
    """Stands in for the chat service: takes a third of a second for each message."""

    received = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.35)
        Webhook.received += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


def set_up_logging(address: str) -> None:
    session = requests.Session()

    def send(message: str) -> None:
        session.post(address, json={"content": message.rstrip()}, timeout=5)

    logger.remove()
    logger.add(sys.stdout, level="DEBUG", format="{level} {message}")
    logger.add(send, level="WARNING", format="{level}: {message}", enqueue=True)


async def look_after_feeds() -> None:
    for number in range(12):
        await asyncio.sleep(0.2)
        logger.debug("feed {} has {} new entries", number, number % 3)
        if number % 4 == 3:
            logger.warning("feed {} answers slowly", number)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await look_after_feeds()
    beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    service = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    set_up_logging(f"http://127.0.0.1:{service.server_port}/webhook")
    asyncio.run(main())
    logger.complete()
    print(f"{Webhook.received} messages in the channel")
