"""A webhook's receiver, on this machine."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GIVES_UP_S = 280


@dataclass
class Receiver:
    """What was posted, and what is answered."""

    url: str = ""
    posts: queue.Queue[tuple[str, dict[str, Any]]] = field(default_factory=queue.Queue)
    answers: queue.SimpleQueue[Callable[[BaseHTTPRequestHandler], None]] = field(
        default_factory=queue.SimpleQueue
    )
    """For the next posts; 200 where there is none."""

    def next(self) -> dict[str, Any]:
        return self.posts.get(timeout=GIVES_UP_S)[1]


def answer(status: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    return send


@contextmanager
def receiver(path: str = "/services/T0/B0/very-secret") -> Iterator[Receiver]:
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.posts.put((self.path, json.loads(body)))
            try:
                send = made.answers.get_nowait()
            except queue.Empty:
                send = answer(200)
            send(self)

        def log_message(self, *words: object) -> None:
            del words

        def handle(self) -> None:
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                return  # who posted has given up

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}{path}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
