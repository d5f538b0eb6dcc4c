"""`loopcanary bundle --send` against a real server that fails in every way it can."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.building.issues import JANK
from tests.building.stalls import BEGAN, SESSION, STALL, S

from loopcanary.cli import main, sending
from loopcanary.model import StallState
from loopcanary.model.search import OTHERS
from loopcanary.model.search import STALLS as STALLS_ONLY
from loopcanary.store import Retention, Store

Captured = pytest.CaptureFixture[str]
Behaviour = Callable[["Receiver", BaseHTTPRequestHandler], None]
STALLS = [replace(STALL, id=f"s1-{n}", began_wall_ns=BEGAN + n * S) for n in range(1, 6)]
IDS = [stall.id for stall in STALLS] + [JANK.id]


@dataclass
class Receiver:
    """Does what its script says, request by request, and then takes what it is sent."""

    script: list[Behaviour] = field(default_factory=list)
    taken: list[bytes] = field(default_factory=list)
    headers: list[Message] = field(default_factory=list)
    """Of each request."""
    over: threading.Event = field(default_factory=threading.Event)
    address: str = ""

    def ids(self) -> list[str]:
        """Of the stalls and issues in the bundles that were taken."""
        return [json.loads(line)["id"] for bundle in self.taken for line in lines_of(bundle)]


def lines_of(bundle: bytes) -> list[bytes]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        names = [name for name in archive.namelist() if name.startswith(("stalls-", "issues-"))]
        return [line for name in names for line in archive.read(name).splitlines()]


def body_of(request: BaseHTTPRequestHandler) -> bytes:
    return request.rfile.read(int(request.headers["Content-Length"]))


def keep(receiver: Receiver, request: BaseHTTPRequestHandler) -> None:
    data = body_of(request)
    assert request.headers["Idempotency-Key"] == f'"{hashlib.sha256(data).hexdigest()}"'
    receiver.taken.append(data)


def says(status: int, **headers: str) -> Behaviour:
    """Reads the bundle and answers so."""

    def behave(_: Receiver, request: BaseHTTPRequestHandler) -> None:
        body_of(request)
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return behave


def takes(receiver: Receiver, request: BaseHTTPRequestHandler) -> None:
    keep(receiver, request)
    request.send_response(204)
    request.end_headers()


def drops(_: Receiver, request: BaseHTTPRequestHandler) -> None:
    """Goes away in the middle of the bundle."""
    request.rfile.read(100)
    request.close_connection = True
    request.connection.close()


def takes_and_drops(receiver: Receiver, request: BaseHTTPRequestHandler) -> None:
    """Has it, but the answer is lost."""
    keep(receiver, request)
    request.close_connection = True


def hangs(receiver: Receiver, request: BaseHTTPRequestHandler) -> None:
    """Reads the bundle and does not answer."""
    body_of(request)
    receiver.over.wait()
    request.close_connection = True


def drips(receiver: Receiver, request: BaseHTTPRequestHandler) -> None:
    """Acknowledges; the rest of its answer never comes to an end."""
    keep(receiver, request)
    request.send_response(200)
    request.send_header("Content-Length", "60000")
    request.end_headers()
    while not receiver.over.wait(0.01):
        request.wfile.write(b"x")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            found.headers.append(self.headers)
            (found.script.pop(0) if found.script else takes)(found, self)

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


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited, in seconds."""
    waited: list[float] = []
    monkeypatch.setattr(sending, "SLEEP", waited.append)
    return waited


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Five stalls and another issue."""
    monkeypatch.setenv("LOOPCANARY_RETENTION", "40000d")
    monkeypatch.setenv("no_proxy", "*")
    store.put([SESSION], STALLS)
    store.put_issue(JANK)
    store.close()
    return store


def left(store: Store) -> list[str]:
    return [one.id for query in (STALLS_ONLY, OTHERS) for one in store.reader.each(query)]


def test_one_post_has_the_bundle_that_can_be_imported(
    filled: Store, receiver: Receiver, place: Path, capsys: Captured
) -> None:
    assert main(["bundle", "--send", f"{receiver.address}?key=s3cr3t"]) == 0
    out = capsys.readouterr().out
    assert out == f"{receiver.address}: 5 stalls and 1 other issue of 1 run.\n"
    (headers,) = receiver.headers
    assert headers["Content-Type"] == "application/zip"
    assert headers["Transfer-Encoding"] is headers["Authorization"] is None
    assert left(filled) == IDS
    (place / "a.zip").write_bytes(receiver.taken[0])
    assert main(["import", "a.zip", "--store", "there"]) == 0
    there = Store(place / "there", retention=Retention(age_ns=1 << 62))
    assert left(there) == IDS
    there.close()


FAILURES: dict[str, list[Behaviour]] = {
    "the connection drops midway": [drops, drops],
    "the server fails": [says(500), says(502), says(503), says(599)],
    "the server asks for patience": [says(429, Retry_After="7"), says(408), says(425)],
    "the answer is lost": [takes_and_drops, takes_and_drops],
    "one after the other": [drops, says(503), takes_and_drops, says(500)],
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("script", FAILURES.values(), ids=FAILURES)
def test_what_fails_is_sent_again_as_it_was(
    receiver: Receiver, script: list[Behaviour], waits: list[float]
) -> None:
    receiver.script += script
    assert main(["bundle", "--send", receiver.address]) == 0
    assert len(set(receiver.taken)) == 1
    assert sorted(set(receiver.ids())) == sorted(IDS)
    assert len({headers["Idempotency-Key"] for headers in receiver.headers}) == 1
    assert len(waits) == len(script) == len(receiver.headers) - 1


@pytest.mark.usefixtures("filled")
def test_a_receiver_that_does_not_answer_is_asked_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_TIMEOUT_S", 0.2)
    monkeypatch.setattr(sending, "ATTEMPTS", 100_000)
    receiver.script += [hangs]
    assert main(["bundle", "--send", receiver.address]) == 0
    assert set(receiver.ids()) == set(IDS)


@pytest.mark.usefixtures("filled")
def test_an_answer_that_does_not_end_is_not_read(receiver: Receiver) -> None:
    receiver.script += [drips] * 9
    assert main(["bundle", "--send", receiver.address]) == 0
    assert receiver.ids() == IDS


@pytest.mark.usefixtures("filled")
def test_a_receiver_is_given_the_time_that_it_asks_for(receiver: Receiver, waits: list[float]) -> None:
    receiver.script += [says(429, Retry_After="70"), says(503, Retry_After="120")]
    assert main(["bundle", "--send", receiver.address]) == 0
    assert waits == [70.0, 120.0]


REFUSED = {
    401: says(401),
    413: says(413),
    302: says(302, Location="http://127.0.0.1:9/elsewhere"),
    307: says(307, Location="http://127.0.0.1:9/elsewhere"),
    501: says(501),
    503: says(503, Retry_After="7200"),
}


@pytest.mark.parametrize(("status", "behaviour"), REFUSED.items())
def test_what_is_refused_is_not_sent_again_and_not_deleted(
    filled: Store, receiver: Receiver, status: int, behaviour: Behaviour, capsys: Captured
) -> None:
    receiver.script += [behaviour]
    assert main(["bundle", "--send", receiver.address, "--delete"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{receiver.address}: the bundle was not sent: the receiver answers {status}" in line
    assert len(receiver.headers) == 1
    assert left(filled) == IDS


def test_without_a_server_it_gives_up_and_deletes_nothing(
    filled: Store, waits: list[float], capsys: Captured
) -> None:
    assert main(["bundle", "--send", "http://127.0.0.1:1/", "--delete"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "the bundle was not sent: the connection failed" in last
    assert len(waits) == sending.ATTEMPTS - 1
    assert left(filled) == IDS


def test_only_what_is_acknowledged_and_has_not_changed_is_deleted(
    filled: Store, receiver: Receiver, capsys: Captured
) -> None:
    killed = replace(STALL, id="s1-9", state=StallState.KILLED, began_wall_ns=BEGAN + 9 * S)
    going_on = replace(killed, id="s1-10", state=StallState.ONGOING)
    ended = replace(killed, state=StallState.ENDED)
    filled.put([], [killed, going_on])

    found_there: list[list[str]] = []

    def ends_meanwhile(found: Receiver, request: BaseHTTPRequestHandler) -> None:
        found_there.append(left(filled))
        filled.put([], [ended])
        takes(found, request)

    receiver.script += [ends_meanwhile]
    assert main(["bundle", "--send", receiver.address, "--delete", "--cause", STALL.cause.value]) == 0
    assert "; 5 deleted here." in capsys.readouterr().out
    assert [sorted(ids) for ids in found_there] == [sorted([*IDS, "s1-9", "s1-10"])]
    assert sorted(left(filled)) == sorted(["s1-9", "s1-10", JANK.id])


@pytest.mark.usefixtures("filled")
def test_the_token_is_sent_and_never_shown(
    receiver: Receiver, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("LOOPCANARY_SEND_TOKEN", "s3cr3t-token\n")
    receiver.script += [says(500), says(401)]
    assert main(["bundle", "--send", f"{receiver.address}?key=s3cr3t-query"]) == 2
    assert [one["Authorization"] for one in receiver.headers] == ["Bearer s3cr3t-token"] * 2
    shown = capsys.readouterr()
    assert "s3cr3t" not in shown.out + shown.err
    kept = [path for path in (place / ".loopcanary").rglob("*") if path.is_file()]
    assert [path for path in kept if b"s3cr3t" in path.read_bytes()] == []


WRONG = [
    (["--send", "http://example.org/"], "use https for other machines"),
    (["--send", "ftp://example.org/"], "begins with https://"),
    (["--send", "example.org"], "begins with https://"),
    (["--send", "https://me:s3cr3t@example.org/"], "contains a user name"),
    (["--send", "https://me:s3cr3t/and-more@example.org/"], "is not an address"),
    (["--send", "https://[::1/"], "is not an address"),
    ([], "name a file with --output, or a receiver with --send"),
    (["-o", "a.zip", "--send", "https://example.org/"], "name a file with --output, or a receiver"),
    (["-o", "a.zip", "--delete"], "--delete needs --send"),
]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_one_line_says_what_is_wrong(
    arguments: list[str], words: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert main(["bundle", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert "s3cr3t" not in line
    assert not (place / "a.zip").exists()


@pytest.mark.usefixtures("filled")
def test_a_token_of_several_words_is_refused(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("LOOPCANARY_SEND_TOKEN", "s3cr3t words")
    assert main(["bundle", "--send", receiver.address]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "loopcanary: LOOPCANARY_SEND_TOKEN is not a token: write one word of ASCII"
    assert receiver.headers == []


@pytest.mark.usefixtures("filled")
def test_a_selection_that_finds_nothing_sends_nothing(receiver: Receiver, capsys: Captured) -> None:
    assert main(["bundle", "--send", receiver.address, "--scene", "nowhere"]) == 1
    assert "no stall matches" in capsys.readouterr().err
    assert receiver.headers == []
    assert main(["bundle", "--send", receiver.address, "--redact", "all", "--bug", "jank"]) == 0
    (line,) = lines_of(receiver.taken[0])
    assert b"orders" not in line
