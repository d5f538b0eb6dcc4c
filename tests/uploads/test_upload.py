"""loopcanary upload against a real server that fails in every way it can."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

pytest.importorskip("httpx2")

from tests.store.samples import JANK, S
from tests.uploads.conftest import (
    IDS,
    STALLS,
    Behaviour,
    Receiving,
    drops,
    hangs,
    keep,
    lines_of,
    says,
    takes_and_drops,
)

from loopcanary.cli import main
from loopcanary.model import StallState
from loopcanary.model.search import OTHERS, IssueQuery
from loopcanary.model.search import STALLS as STALLS_ONLY
from loopcanary.store import Store
from loopcanary.uploads import UploadError, journal, sending

Captured = pytest.CaptureFixture[str]
ONE_EACH = ["--part-size", "1"]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited, in seconds: nobody does."""
    waited: list[float] = []
    monkeypatch.setattr(sending, "SLEEP", waited.append)
    return waited


def outbox(place: Path) -> list[str]:
    return [path.name for path in (place / ".loopcanary" / "outbox").iterdir()]


@pytest.mark.usefixtures("store")
def test_everything_is_sent_once(receiving: Receiving, place: Path, capsys: Captured) -> None:
    assert main(["upload", receiving.address]) == 0
    assert capsys.readouterr().out == f"{receiving.address}: sent 6 records in 1 bundle.\n"
    assert receiving.ids() == IDS
    assert outbox(place) == []
    assert main(["upload", receiving.address]) == 0
    assert "sent 0 records in 0 bundles; 6 had been sent before" in capsys.readouterr().out
    assert len(receiving.keys) == 1
    sent = receiving.headers[0]
    assert sent["Content-Type"] == "application/zip"
    assert sent["Content-Digest"].startswith("sha-256=:")
    assert sent["Transfer-Encoding"] is None
    assert sent["Authorization"] is None


@pytest.mark.usefixtures("store")
def test_what_arrives_is_a_bundle_that_can_be_imported(receiving: Receiving, place: Path) -> None:
    assert main(["upload", receiving.address, *ONE_EACH]) == 0
    assert len(receiving.taken) == len(IDS)
    for number, data in enumerate(receiving.taken.values()):
        (place / f"{number}.zip").write_bytes(data)
    assert main(["import", *(f"{n}.zip" for n in range(len(IDS))), "--store", "there"]) == 0
    there = Store(place / "there")
    assert sorted(there.reader.like("id", "", STALLS_ONLY, 99)) == [stall.id for stall in STALLS]
    assert len(there.reader.sessions(IssueQuery())) == 1
    there.close()


FAILURES: dict[str, list[Behaviour]] = {
    "the connection drops midway": [drops, drops],
    "the server fails": [says(500), says(502), says(503), says(599)],
    "the server asks for patience": [says(429, Retry_After="7"), says(408), says(425)],
    "the answer is lost": [takes_and_drops, takes_and_drops],
    "one after the other": [drops, says(503), takes_and_drops, says(500)],
}


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("script", FAILURES.values(), ids=FAILURES)
def test_what_fails_is_sent_again_as_it_was(
    receiving: Receiving, script: list[Behaviour], waits: list[float], place: Path
) -> None:
    receiving.script += script
    assert main(["upload", receiving.address]) == 0
    assert receiving.ids() == IDS
    assert len(set(receiving.keys)) == 1
    assert len(waits) == len(script) == len(receiving.keys) - 1
    assert outbox(place) == []


@pytest.mark.usefixtures("store")
def test_who_does_not_answer_is_asked_again(receiving: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than the timeout for any answer: then it is asked again, too."""
    monkeypatch.setattr(sending, "ATTEMPTS", 100_000)
    receiving.script += [hangs]
    assert main(["upload", receiving.address, "--timeout", "200ms"]) == 0
    assert receiving.ids() == IDS
    assert len(receiving.keys) > 1
    assert len(set(receiving.keys)) == 1


@pytest.mark.usefixtures("store")
def test_an_answer_that_does_not_end_is_not_read_to_its_end(receiving: Receiving) -> None:
    """Its status has come; each byte of the rest comes in time, and all of them never do."""

    def drips(found: Receiving, request: BaseHTTPRequestHandler) -> None:
        keep(found, request)
        request.send_response(200)
        request.send_header("Content-Length", "60000")
        request.end_headers()
        while not found.over.wait(0.01):
            request.wfile.write(b"x")

    receiving.script += [drips] * 9
    assert main(["upload", receiving.address, "--timeout", "1s"]) == 0
    assert receiving.ids() == IDS


@pytest.mark.usefixtures("store")
def test_a_receiver_is_given_the_time_that_it_asks_for(receiving: Receiving, waits: list[float]) -> None:
    receiving.script += [says(429, Retry_After="7"), says(503, Retry_After="120")]
    assert main(["upload", receiving.address]) == 0
    assert waits == [7.0, 120.0]


@pytest.mark.usefixtures("store")
def test_one_that_asks_for_hours_is_left_alone_and_asked_later(
    receiving: Receiving, waits: list[float], capsys: Captured, place: Path
) -> None:
    receiving.script += [says(429, Retry_After="7200")]
    assert main(["upload", receiving.address]) == 2
    assert "asks to come back in 120 minutes" in capsys.readouterr().err
    assert waits == []
    assert len(outbox(place)) == 1
    assert main(["upload", receiving.address]) == 0
    assert receiving.ids() == IDS
    assert len(set(receiving.keys)) == 1


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "who you are"),
        (403, "does not let you"),
        (404, "nothing at this address"),
        (413, "smaller --part-size"),
        (418, "it answers 418"),
        (302, "at another address"),
        (501, "it answers 501"),
    ],
)
@pytest.mark.usefixtures("place")
def test_what_is_refused_is_not_sent_again_and_not_forgotten(
    receiving: Receiving, status: int, words: str, waits: list[float], capsys: Captured
) -> None:
    receiving.script += [says(status, Location="http://127.0.0.1:9/elsewhere")]
    assert main(["upload", receiving.address, "--delete"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert len(receiving.keys) == 1
    assert waits == []
    assert outbox(Path.cwd()) == []
    assert main(["upload", receiving.address]) == 0
    assert receiving.ids() == IDS


@pytest.mark.usefixtures("store")
def test_it_gives_up_in_the_end_and_goes_on_from_there(
    receiving: Receiving, waits: list[float], capsys: Captured
) -> None:
    receiving.script += [says(204), *[says(503)] * sending.ATTEMPTS]
    assert main(["upload", receiving.address, *ONE_EACH]) == 2
    assert "given up after 8 attempts: it answers 503" in capsys.readouterr().err
    assert len(waits) == sending.ATTEMPTS - 1
    assert main(["upload", receiving.address, *ONE_EACH]) == 0
    assert receiving.ids() == IDS[1:]
    assert receiving.keys[1] == receiving.keys[-len(IDS) + 1]


@pytest.mark.usefixtures("store")
def test_without_a_server_nothing_is_lost(capsys: Captured, receiving: Receiving) -> None:
    nobody = "http://127.0.0.1:1/"
    assert main(["upload", nobody, "--delete"]) == 2
    assert "given up after 8 attempts: the connection failed" in capsys.readouterr().err
    assert main(["upload", receiving.address]) == 0
    assert receiving.ids() == IDS


# ---- deleting -------------------------------------------------------------------------------------


def left(store: Store) -> list[str]:
    return [one.id for query in (STALLS_ONLY, OTHERS) for one in store.reader.each(query)]


def test_only_what_is_acknowledged_is_deleted(store: Store, receiving: Receiving, capsys: Captured) -> None:
    receiving.script += [says(200), says(202), says(403)]
    assert main(["upload", receiving.address, "--delete", *ONE_EACH]) == 2
    assert left(store) == IDS[2:]
    capsys.readouterr()
    assert main(["upload", receiving.address, "--delete", *ONE_EACH]) == 0
    assert "4 deleted here" in capsys.readouterr().out
    assert left(store) == []


def test_nothing_is_deleted_unless_it_is_asked_for(store: Store, receiving: Receiving) -> None:
    main(["upload", receiving.address])
    assert left(store) == IDS
    assert main(["upload", receiving.address, "--delete"]) == 0
    assert left(store) == []
    assert len(receiving.keys) == 1


def test_what_went_on_since_is_sent_again_and_not_deleted_before(store: Store, receiving: Receiving) -> None:
    killed = replace(
        STALLS[0], id="s1-9", state=StallState.KILLED, began_wall_ns=STALLS[-1].began_wall_ns + S
    )
    going_on = replace(killed, id="s1-10", state=StallState.ONGOING)
    store.put([], [killed, going_on])
    main(["upload", receiving.address])
    assert "s1-10" not in receiving.ids()
    ended = replace(killed, state=StallState.ENDED)
    store.put([], [ended])

    def fails_first(_: Receiving, request: BaseHTTPRequestHandler) -> None:
        assert store.reader.issue("s1-9") == ended
        says(403)(_, request)

    receiving.script += [fails_first]
    assert main(["upload", receiving.address, "--delete"]) == 2
    assert store.reader.issue("s1-9") == ended
    assert main(["upload", receiving.address, "--delete"]) == 0
    assert left(store) == ["s1-10"]


def test_what_another_receiver_has_this_one_has_not(store: Store, receiving: Receiving) -> None:
    main(["upload", receiving.address])
    for other in (["upload", f"{receiving.address}/other"], ["upload", receiving.address, "--redact", "all"]):
        before = len(receiving.keys)
        assert main(other) == 0
        assert len(receiving.keys) == before + 1
    assert left(store) == IDS


# ---- ends in the middle ---------------------------------------------------------------------------


@pytest.mark.usefixtures("store")
def test_a_killed_upload_sends_the_same_bytes_again(
    receiving: Receiving, place: Path, package_path: Path, capsys: Captured
) -> None:
    """The receiver has the bundle; the sender does not know it, and is gone."""
    code = "import sys; from loopcanary.cli import main; sys.exit(main())"
    sender: queue.Queue[subprocess.Popen[bytes]] = queue.Queue()

    def kills(found: Receiving, request: BaseHTTPRequestHandler) -> None:
        keep(found, request)
        if len(found.taken) == 3:
            sender.get().kill()
            request.close_connection = True
        else:
            says_taken(request)

    receiving.script += [kills] * 3
    path = os.pathsep.join(filter(None, [str(package_path), os.environ.get("PYTHONPATH")]))
    child = subprocess.Popen(
        [sys.executable, "-c", code, "upload", receiving.address, *ONE_EACH],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path},
    )
    sender.put(child)
    assert child.wait(280) == -signal.SIGKILL
    assert len(outbox(place)) == 1
    assert main(["upload", receiving.address, *ONE_EACH]) == 0
    assert receiving.ids() == IDS
    assert receiving.keys[2] == receiving.keys[3]
    assert len(receiving.keys) == len(IDS) + 1
    assert "sent 4 records in 4 bundles; 2 had been sent before" in capsys.readouterr().out


def says_taken(request: BaseHTTPRequestHandler) -> None:
    request.send_response(204)
    request.end_headers()


@pytest.mark.parametrize("step", ["acknowledge", "pack"])
def test_whatever_step_it_ends_in_all_is_sent_and_nothing_lost(
    store: Store, receiving: Receiving, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C at the first, the second... such step: before it, and after it."""
    real = getattr(journal.Journal, step)
    for after in (False, True):
        calls = 0

        def ends(self: journal.Journal, *args: object, after: bool = after) -> object:
            nonlocal calls
            calls += 1
            if calls == 2 and not after:
                raise KeyboardInterrupt
            result = real(self, *args)
            if calls == 2:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(journal.Journal, step, ends)
        address = f"{receiving.address}/{after}"
        receiving.taken.clear()
        assert main(["upload", address, *ONE_EACH]) == 130
        assert left(store) == IDS
        monkeypatch.setattr(journal.Journal, step, real)
        assert main(["upload", address, *ONE_EACH]) == 0
        assert sorted(receiving.ids()) == sorted(IDS)


def test_two_at_once_are_one_too_many(store: Store) -> None:
    first = journal.Journal(store.folder)
    with pytest.raises(UploadError, match=r"another upload from .* is at work"):
        journal.Journal(store.folder)
    first.close()
    journal.Journal(store.folder).close()


@pytest.mark.usefixtures("store")
def test_a_removed_or_changed_bundle_is_made_anew(receiving: Receiving, place: Path) -> None:
    for spoil in (lambda path: path.unlink(), lambda path: path.write_bytes(b"something else")):
        receiving.script += [says(503)] * sending.ATTEMPTS
        address = f"{receiving.address}/{spoil.__code__.co_firstlineno}{id(spoil)}"
        assert main(["upload", address]) == 2
        (pending,) = (place / ".loopcanary" / "outbox").iterdir()
        spoil(pending)
        receiving.taken.clear()
        assert main(["upload", address]) == 0
        assert receiving.ids() == IDS


@pytest.mark.usefixtures("store")
def test_what_is_no_bundle_and_stays_in_the_outbox_is_no_matter(receiving: Receiving, place: Path) -> None:
    left = place / ".loopcanary" / "outbox" / "a-folder"
    left.mkdir(parents=True)
    assert main(["upload", receiving.address]) == 0
    assert receiving.ids() == IDS
    assert left.is_dir()


# ---- secrets, addresses ---------------------------------------------------------------------------


@pytest.mark.usefixtures("store")
def test_a_token_is_sent_and_never_shown_or_kept(
    receiving: Receiving, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("LOOPCANARY_UPLOAD_TOKEN", "s3cr3t-of-env")
    (place / "token").write_text("s3cr3t-of-file\n")
    (place / "headers").write_text("# ours\nX-Api-Key: s3cr3t-key\n\n")
    receiving.script += [says(500), says(401)]
    assert main(["upload", f"{receiving.address}?key=s3cr3t-query"]) == 2
    more = ["--token-file", "token", "--headers-file", "headers"]
    assert main(["upload", f"{receiving.address}?key=s3cr3t-query", *more]) == 0
    assert [found["Authorization"] for found in receiving.headers] == [
        "Bearer s3cr3t-of-env",
        "Bearer s3cr3t-of-env",
        "Bearer s3cr3t-of-file",
    ]
    assert receiving.headers[-1]["X-Api-Key"] == "s3cr3t-key"
    shown = capsys.readouterr()
    assert "s3cr3t" not in shown.out + shown.err
    kept = [path for path in (place / ".loopcanary").rglob("*") if path.is_file()]
    assert [path for path in kept if b"s3cr3t" in path.read_bytes()] == []


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["http://example.org/"], "use https, or --insecure-http"),
        (["ftp://example.org/"], "begins with https://"),
        (["example.org"], "begins with https://"),
        (["https://me:s3cr3t@example.org/"], "do not belong in a URL"),
        (["https://me:s3cr3t/and-more@example.org/"], "no URL"),
        (["https://[::1/"], "no URL"),
        (["https://example.org:99999/"], "no URL"),
        (["https://example.org/", "--token-file", "none"], "cannot be read"),
        (["https://example.org/", "--token-file", "empty"], "is empty"),
        (["https://example.org/", "--token-file", "two"], "is no token"),
        (["https://example.org/", "--headers-file", "two"], "line 1: a header is wanted"),
        (["https://example.org/", "--headers-file", "ours"], "line 1: Content-Length is set by loopcanary"),
        (["https://example.org/", "--part-size", "many"], "is no size"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    place: Path, arguments: list[str], words: str, capsys: Captured
) -> None:
    (place / "empty").write_text("\n")
    (place / "two").write_text("s3cr3t words\n")
    (place / "ours").write_text("Content-Length: 3\n")
    assert main(["upload", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert "s3cr3t" not in line


@pytest.mark.usefixtures("store")
def test_a_selection_that_finds_nothing_sends_nothing(receiving: Receiving, capsys: Captured) -> None:
    assert main(["upload", receiving.address, "--scene", "nowhere"]) == 1
    assert capsys.readouterr().err == "loopcanary: no stall matches, nothing was sent\n"
    assert receiving.keys == []
    assert main(["upload", receiving.address, "--group", "jank"]) == 0
    assert receiving.ids() == [JANK.id]


@pytest.mark.usefixtures("store")
def test_what_is_redacted_is_redacted_on_the_wire(receiving: Receiving) -> None:
    assert main(["upload", receiving.address, "--redact", "all", *ONE_EACH]) == 0
    sent = [line for data in receiving.taken.values() for line in lines_of(data)]
    assert not [line for line in sent if b"orders" in line]
    files = {line.split(b'"file":"')[1].split(b'"')[0] for line in sent if b'"file":"' in line}
    assert len(files) == 1, "a path has one pseudonym in all bundles"


def test_without_the_library_one_line_says_what_to_install(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert main(["upload", "https://example.org/", "--store", str(store.folder)]) == 2
    assert 'pip install "loopcanary[upload]"' in capsys.readouterr().err
