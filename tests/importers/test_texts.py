"""loopcanary import of what Android's monitors write."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.importers.logs import FRAMES, WATCHDOG, block, logcat, old

from loopcanary.cli import main
from loopcanary.importers import blockcanary, sources, watchdog
from loopcanary.importers.java import place_of
from loopcanary.model import Cause, Session, Stall
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.protocols.imports import CodePlace, Line
from loopcanary.store import Retention, Store

MS = 1_000_000
KEPT = Retention(age_ns=1 << 62)
Captured = pytest.CaptureFixture[str]


def taken(*args: str) -> tuple[list[Stall], list[Session]]:
    assert main(["import", *args, "--store", "s"]) == 0
    store = Store(Path("s"), retention=KEPT)
    try:
        return list(store.reader.each(STALLS)), list(store.reader.sessions(IssueQuery()))
    finally:
        store.close()


def written(name: str, text: str) -> str:
    Path("in", name).write_bytes(text.encode())
    return f"in/{name}"


def test_a_block_log_is_a_stall() -> None:
    (stall,), (session,) = taken(written("a.log", block()))
    assert (stall.duration_ns, stall.ledger.on_cpu_ns) == (1500 * MS, 40 * MS)
    assert stall.culprit is not None
    assert (stall.culprit.file, stall.culprit.qualname) == ("com/example/shop/Orders.java", "Orders$1.load")
    assert (stall.culprit.line, stall.cause, stall.advice) == (42, Cause.UNKNOWN, None)
    assert stall.title == "SQLiteConnection.nativeExecute() in load (Orders.java:42)"
    assert "40.0 ms of 1.50 s: it was waiting" in stall.evidence[0]
    assert "1 CPU row not counted: from another time" in " ".join(stall.evidence)
    assert (stall.samples, len(stall.stacks)) == (2, 1)
    assert (session.name, session.host, session.version) == ("com.example.shop", "Nexus 5", "1.2 (12)")
    assert session.python == "Android 6.0.1 (API 23)"
    assert "mary" not in repr(session)
    assert "866900000000001" not in repr(session)


def test_a_thread_that_ran_computed() -> None:
    (stall,), _ = taken(written("a.log", block(ran=1400)))
    assert stall.cause is Cause.CPU


def test_every_form_of_one_block_is_the_same_stall() -> None:
    text = block()
    forms = [text, text.replace("\r\n", "\n"), old(text), text[text.index("qua") :], logcat(text)]
    for number, form in enumerate(forms):
        written(f"{number}.txt", form)
    with zipfile.ZipFile("in/all.zip", "w") as archive:
        archive.writestr("x/looper.log", text)
    stalls, sessions = taken("in")
    assert len(sessions) == 1
    # Without its head the year is the one of the import.
    assert len({stall.fingerprint for stall in stalls}) == 1
    assert len(stalls) <= 2


def test_several_blocks_in_a_file_and_again_add_nothing(capsys: Captured) -> None:
    path = written("a.log", block() + block(at="09:58:50") + block(at="09:57:50"))
    stalls, _ = taken(path)
    assert len(stalls) == 3
    capsys.readouterr()
    stalls, _ = taken(path)
    assert len(stalls) == 3
    assert "3 stalls already in the store" in capsys.readouterr().out


def test_a_bug_survives_a_build() -> None:
    moved = FRAMES.replace(":42", ":57").replace("Orders$1", "Orders$3")
    written("a.log", block())
    written("b.log", block(at="09:58:50", ran=1400, frames=moved))
    stalls, _ = taken("in")
    assert len(stalls) == 2
    assert len({stall.fingerprint for stall in stalls}) == 1


def test_the_package_of_concern_has_the_culprit() -> None:
    written("a.log", block(frames=f"com.lib.Cache.get(Cache.java:3)\n{FRAMES}"))
    (stall,), _ = taken("in", "--concern", "com.example")
    assert stall.culprit is not None
    assert stall.culprit.qualname == "Orders$1.load"


@pytest.mark.parametrize(
    ("process", "culprit"),
    [
        ("com.example.shop", "Orders$1.load"),
        ("com.example.shop:remote", "Orders$1.load"),
        ("shop", "Cache.get"),
    ],
)
def test_without_one_the_process_says_whose_code_it_is(process: str, culprit: str) -> None:
    text = block(frames=f"com.lib.Cache.get(Cache.java:3)\n{FRAMES}")
    written("a.log", text.replace("process = com.example.shop", f"process = {process}"))
    (stall,), _ = taken("in")
    assert stall.culprit is not None
    assert stall.culprit.qualname == culprit


def test_what_is_cut_or_odd_is_read_as_far_as_it_goes(capsys: Captured) -> None:
    text = block().replace("uid = mary", "uid = ").replace("Nexus 5", "a = b")
    written("a.log", f"gibberish\n{text}"[: text.index("onClick")])
    (stall,), (session,) = taken("in")
    assert session.host == "a = b"
    assert stall.culprit is not None
    assert "a.log: 2 lines without known content (1, 3" in capsys.readouterr().err


def test_new_year() -> None:
    text = block(day="12-31", at="23:59:59").replace("2016-12-31 10:00:01", "2017-01-01 00:00:02")
    (stall,), _ = taken(written("a.log", text))
    began = stall.began_wall_ns // 1_000_000_000
    assert 1_483_100_000 < began < 1_483_320_000


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WATCHDOG.encode())))
    (stall,), _ = taken("-")
    assert stall.duration_ns == 5_000 * MS
    assert stall.culprit is not None
    assert stall.culprit.qualname == "MainActivity.Sleep"
    assert [thread.name for thread in stall.threads] == ["worker"]


def test_a_watchdog_in_a_logcat() -> None:
    (stall,), _ = taken(written("a.txt", logcat(WATCHDOG, "AndroidRuntime")))
    assert stall.engine == "ANR-WatchDog"


def test_a_logcat_as_eclipse_shows_it() -> None:
    lines = [f"07-13 15:48:57.588: E/AndroidRuntime(20144): {line}" for line in WATCHDOG.splitlines()]
    (stall,), _ = taken(written("a.txt", "\n".join(lines)))
    assert stall.culprit is not None
    assert stall.culprit.qualname == "MainActivity.Sleep"


def test_the_report_has_nothing_of_python(capsys: Captured) -> None:
    (stall,), _ = taken(written("a.log", block(ran=1400)))
    capsys.readouterr()
    for command in ("report", "show"):
        arguments = [command] if command == "report" else [command, stall.id]
        assert main([*arguments, "--store", "s"]) == 0
        shown = capsys.readouterr().out
        assert "Python" not in shown
        assert "try" not in shown


def test_an_unknown_text_is_refused(capsys: Captured) -> None:
    assert main(["import", written("a.txt", "time = 5\nhello"), "--store", "s"]) == 2
    assert "cannot be imported" in capsys.readouterr().err


def test_a_zip_bomb_stays_closed(capsys: Captured) -> None:
    with zipfile.ZipFile("in/bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", b"\n" * (8 << 20))
        archive.writestr("../../b.log", block())
    stalls, _ = taken("in")
    assert len(stalls) == 1
    assert "a.log: it would unpack to 8,388,608 bytes" in capsys.readouterr().err


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other.log").write_text(block(at="01:00:00"))
    Path("in/link.log").symlink_to(tmp_path / "other.log")
    written("a.log", block())
    assert len(taken("in")[0]) == 1


def test_the_list_names_them(capsys: Captured) -> None:
    assert main(["import", "--list"]) == 0
    shown = capsys.readouterr().out
    assert "bundle " in shown
    assert "blockcanary " in shown


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("com.foo.Bar.baz(Bar.java:42)", CodePlace("com.foo.Bar", "baz", "Bar.java", 42)),
        ("\tat a.B$1.<init>(Native Method)", CodePlace("a.B$1", "<init>", "", 0)),
        ("at a.B.c(Unknown Source:12)", CodePlace("a.B", "c", "", 12)),
        ("a.b.c(SourceFile)", CodePlace("a.b", "c", "", 0)),
        ("at java.base/java.lang.T.run(T.java:1)", CodePlace("java.lang.T", "run", "T.java", 1)),
        ("at com.foo.Bar:baz(42)", CodePlace("com.foo.Bar", "baz", "", 42)),
        ("at a.b.Bar.java.lang.String baz(int)(SourceFile:3)", CodePlace("a.b.Bar", "baz", "", 3)),
        ("at a.b.Bar$1.void <init>()(Bar.java:4)", CodePlace("a.b.Bar$1", "<init>", "Bar.java", 4)),
        ("  at a.b.C.d (Unknown Source:12)", CodePlace("a.b.C", "d", "", 12)),
        ("see a.b.C.d (C.java:1)", None),
        ("nothing(here)", None),
        ("", None),
    ],
)  # fmt: skip
def test_frames(text: str, found: CodePlace | None) -> None:
    assert place_of(text) == found


PIECES = [
    *block().splitlines(),
    *WATCHDOG.splitlines(),
    "time = 99999999999999999",
    "stack = ",
    "time = -1",
]


def any_lines() -> some.SearchStrategy[list[str]]:
    return some.lists(some.one_of(some.sampled_from(PIECES), some.text(max_size=60)), max_size=60)


@given(any_lines())
def test_no_lines_raise(lines: list[str]) -> None:
    def each() -> Iterator[object]:
        for stream in sources.streams(lines):
            assert all(isinstance(line, Line) for line in stream)
            for importer in (blockcanary.BLOCKCANARY, watchdog.WATCHDOG):
                yield from importer.find(stream, near_wall_ns=1_500_000_000_000_000_000)

    for found in each():
        assert found.lines  # type: ignore[attr-defined]
