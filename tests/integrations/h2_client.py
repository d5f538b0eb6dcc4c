"""HTTP/2 as http.client does HTTP/1: one request at a time on a connection."""

from __future__ import annotations

import io
import socket
import ssl
from typing import Any


class H2Connection:
    """In clear, or behind TLS where a context is given. Whatever goes wrong raises."""

    def __init__(self, port: int, timeout: float, context: ssl.SSLContext | None = None) -> None:
        self._port = port
        self._timeout = timeout
        self._context = context
        self._socket: socket.socket | None = None
        self._stream = 0

    def connect(self) -> None:
        """Returns when each side has said what it wants, and been told that it was heard: from here on
        nothing is sent but requests."""
        from h2.connection import H2Connection as Protocol
        from h2.events import RemoteSettingsChanged, SettingsAcknowledged

        plain = socket.create_connection(("127.0.0.1", self._port), self._timeout)
        self._socket = plain if self._context is None else self._context.wrap_socket(plain)
        self._protocol = Protocol()
        self._protocol.initiate_connection()
        heard: set[type] = set()
        while not heard >= {RemoteSettingsChanged, SettingsAcknowledged}:
            heard |= {type(event) for event in self._exchange()}

    def request(self, method: str, target: str) -> None:
        if self._socket is None:
            self.connect()
        self._stream = self._protocol.get_next_available_stream_id()
        asked = {":method": method, ":path": target, ":authority": "localhost", ":scheme": "https"}
        self._protocol.send_headers(self._stream, list(asked.items()), end_stream=True)
        self._flush()

    def getresponse(self) -> io.BytesIO:
        from h2.events import DataReceived, StreamEnded

        body = io.BytesIO()
        while True:
            for event in self._exchange():
                if isinstance(event, DataReceived):
                    body.write(event.data)
                elif isinstance(event, StreamEnded) and event.stream_id == self._stream:
                    body.seek(0)
                    return body

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _flush(self) -> None:
        assert self._socket is not None
        self._socket.sendall(self._protocol.data_to_send())

    def _exchange(self) -> list[Any]:
        assert self._socket is not None
        self._flush()
        data = self._socket.recv(65536)
        assert data, "the server has hung up"
        events = self._protocol.receive_data(data)
        self._flush()
        return events
