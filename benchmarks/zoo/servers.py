"""Other people's servers, for programs that ask them: slow or silent, in a thread of the program."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW_S = 0.3
"""How long they let their clients wait."""


@contextlib.contextmanager
def slow_http(status: int = 204, seconds: float = SLOW_S) -> Iterator[str]:
    """The address of a server that answers each GET late."""

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(seconds)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextlib.contextmanager
def silent() -> Iterator[int]:
    """The port of a server that accepts, says nothing, and hangs up."""

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:  # closed
                return
            time.sleep(SLOW_S)
            client.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
