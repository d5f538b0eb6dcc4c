"""`loopcanary health --listen`: the answer by HTTP, for load balancers and probes that run no command.

A process of its own: the program that hangs could not answer.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import click

from loopcanary.cli.refusals import refuse

Answer = Callable[[str | None], tuple[bool, str]]
"""From the request's limit: whether every loop makes progress, and the JSON. May raise click.BadParameter."""
_PATIENCE_S = 5
_PORT_MAX = 65_535


def serve(place: str, answer: Answer) -> int:
    """Answers until Control-C or SIGTERM, on threads of its own. Main thread."""
    host, _, port = place.rpartition(":")
    if not port.isdigit() or int(port) > _PORT_MAX:
        return refuse(
            f"--listen {place}: no port; write 8080, or 0.0.0.0:8080 for all addresses of this machine"
        )
    host = host.strip("[]") or "127.0.0.1"
    try:
        server = (_ProbeServer6 if ":" in host else _ProbeServer)((host, int(port)), _handler(answer))
    except (OSError, UnicodeError) as error:  # the latter of a host that cannot be a name
        return refuse(f"--listen {place}: {getattr(error, 'strerror', None) or error}")
    with server:
        where = f"http://{f'[{host}]' if ':' in host else host}:{server.server_address[1]}/"
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        click.echo(f"answers at {where}")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


class _ProbeServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is not an error."""


class _ProbeServer6(_ProbeServer):
    address_family = socket.AF_INET6


def _handler(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_S

        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query).get("limit")
            try:
                is_healthy, text = answer(asked[-1] if asked else None)
            except click.BadParameter as error:
                self._send(HTTPStatus.BAD_REQUEST, error.message + "\n", "text/plain; charset=utf-8")
                return
            status = HTTPStatus.OK if is_healthy else HTTPStatus.SERVICE_UNAVAILABLE
            self._send(status, text + "\n", "application/json")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes come every few seconds."""

    return Handler
