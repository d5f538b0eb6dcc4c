from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.store.samples import BEGAN, JANK, SESSION, STALL, S

from loopcanary.store import Retention, Store

Behaviour = Callable[["Receiving", BaseHTTPRequestHandler], None]


@dataclass
class Receiving:
    """A receiver: does what its script says, request by request, and then takes what it is sent."""

    script: list[Behaviour] = field(default_factory=list)
    taken: dict[str, bytes] = field(default_factory=dict)
    """Bundles by idempotency key."""
    keys: list[str] = field(default_factory=list)
    """Of all requests, in their order."""
    headers: list[Message] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """The test is over: who hangs may go."""
    address: str = ""

    def ids(self) -> list[str]:
        """Of the stalls and issues in what was taken, in their order."""
        return [json.loads(line)["id"] for data in self.taken.values() for line in lines_of(data)]


def lines_of(bundle: bytes) -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        names = [name for name in archive.namelist() if name.startswith(("stalls-", "issues-"))]
        return [line for name in names for line in archive.read(name).splitlines()]


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    return request.rfile.read(int(request.headers["Content-Length"]))


def take(receiving: Receiving, request: BaseHTTPRequestHandler) -> None:
    keep(receiving, request)
    answer(request, 204)


def keep(receiving: Receiving, request: BaseHTTPRequestHandler) -> None:
    data = body_of(request)
    key = request.headers["Idempotency-Key"]
    assert key == f'"{hashlib.sha256(data).hexdigest()}"'
    receiving.taken[key] = data


def answer(request: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    if status != 204:
        request.send_header("Content-Length", "0")
    request.end_headers()


def says(status: int, **headers: str) -> Behaviour:
    """Reads the bundle and answers so."""

    def behave(_: Receiving, request: BaseHTTPRequestHandler) -> None:
        body_of(request)
        answer(request, status, **headers)

    return behave


def drops(_: Receiving, request: BaseHTTPRequestHandler) -> None:
    """Goes away in the middle of the bundle."""
    request.rfile.read(100)
    request.close_connection = True
    request.connection.close()


def hangs(receiving: Receiving, request: BaseHTTPRequestHandler) -> None:
    """Reads the bundle and says nothing."""
    body_of(request)
    receiving.over.wait()
    request.close_connection = True


def takes_and_drops(receiving: Receiving, request: BaseHTTPRequestHandler) -> None:
    """Has it, but the answer is lost."""
    keep(receiving, request)
    request.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up."""


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    found = Receiving()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            found.keys.append(self.headers["Idempotency-Key"])
            found.headers.append(self.headers)
            behave = found.script.pop(0) if found.script else take
            behave(found, self)

        def log_message(self, *_: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    found.address = f"http://127.0.0.1:{server.server_port}/stalls"
    yield found
    found.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and an environment without settings of ours or proxies."""
    for name in [
        name for name in os.environ if name.startswith("LOOPCANARY") or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LOOPCANARY_RETENTION_AGE", "40000d")
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


STALLS = [replace(STALL, id=f"s1-{n}", began_wall_ns=BEGAN + n * S) for n in range(1, 6)]
IDS = [stall.id for stall in STALLS] + [JANK.id]


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    """Five stalls and another issue."""
    made = Store(place / ".loopcanary", retention=Retention(age_ns=1 << 62))
    made.put([SESSION], STALLS)
    made.put_issue(JANK)
    made.close()
    yield made
    made.close()
