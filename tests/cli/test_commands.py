"""report, show, clean, doctor and the command line itself."""

from __future__ import annotations

import io
import json
import os
import pty
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.building.issues import ISSUES
from tests.building.stalls import KILLED, SESSION, STALL, hostile_stall, session, stall
from tests.cli.conftest import LOOPCANARY

from loopcanary.cli import main
from loopcanary.cli.command_line import COMMANDS
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.store import Recovery, Retention, Store, StoreError

Captured = pytest.CaptureFixture[str]
ALL = IssueQuery()


@pytest.fixture
def filled(store: Store) -> Store:
    store.put([SESSION], [STALL, KILLED])
    store.close()
    return store


def told(capsys: Captured) -> str:
    """The one line on stderr."""
    captured = capsys.readouterr()
    [line] = captured.err.splitlines()
    assert line.startswith("loopcanary: ")
    return line


# ---- the command line itself ----------------------------------------------------------------------


def test_without_a_command_the_commands_are_shown(capsys: Captured) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name}" in shown for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys: Captured, name: str) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: loopcanary {name}" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_the_version_is_shown(capsys: Captured) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("loopcanary ")


BAD_USE = {
    "a command that is none": ["rnu"],
    "an option that is none": ["report", "--frobnicate"],
    "a format that is none": ["report", "--format", "pdf"],
    "a format that is another command's": ["diff", "--format", "html"],
    "a time that is none": ["report", "--since", "yesteryear"],
    "a cause that is none": ["report", "--cause", "magic"],
    "a negative limit": ["report", "--limit", "-1"],
    "a limit that is no number": ["report", "--limit", "many"],
    "a port that is none": ["ui", "--port", "70000"],
    "an interval that is none": ["top", "--once", "--interval", "nan"],
    "nothing to show": ["show"],
    "nothing to run": ["run"],
    "nothing to run but options": ["run", "--threshold", "1s"],
    "a threshold that is none": ["run", "--threshold", "soon", "app.py"],
    "an engine that is none": ["run", "--engine", "diesel", "app.py"],
    "an empty store to run with": ["run", "--store", "", "app.py"],
    "an empty threshold": ["run", "--threshold", "", "app.py"],
    "an empty name": ["run", "--name=", "app.py"],
    "an empty package": ["run", "--concern", " ", "app.py"],
    "an empty thing to ignore": ["run", "--ignore", "", "app.py"],
    "an empty package of methods": ["run", "--methods", "", "app.py"],
    "an empty store to report from": ["report", "--store", ""],
    "an empty session": ["report", "--run", ""],
    "an empty text": ["report", "--text", ""],
    "an empty id": ["show", ""],
    "an empty fingerprint": ["clean", "--bug", ""],
    "nothing to clean": ["clean"],
    "two things to clean": ["clean", "--keep", "1", "--all"],
    "all without a terminal to ask on": ["clean", "--all"],
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("arguments", BAD_USE.values(), ids=BAD_USE)
def test_bad_use_is_status_2_and_one_line(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(arguments) == 2
    assert told(capsys)


def test_html_is_a_format_and_nonsense_is_not(capsys: Captured) -> None:
    main(["show", "1:f00d", "--format", "html"])
    assert "html is not a format of this command: use text, json or markdown" in told(capsys)


@pytest.mark.usefixtures("place")
def test_what_is_wrong_with_an_option_names_the_option(capsys: Captured) -> None:
    main(["run", "--threshold", "100", "app.py"])
    assert "loopcanary: option --threshold: '100' is not a duration" in told(capsys)
    main(["keep", "--notify", "soon"])
    assert "loopcanary: option --notify: 'soon' is not a way to notify" in told(capsys)
    main(["run", "--methods-ring", "much", "app.py"])
    assert "loopcanary: option --methods-ring: 'much' is not a size" in told(capsys)


def test_the_help_loads_nothing_heavy(loopcanary: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    result = loopcanary("--help", flags=("-X", "importtime"))
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "click" in loaded
    assert (
        loaded & {"rich.console", "sqlite3", "asyncio", "loopcanary.engine", "loopcanary.diagnosis"} == set()
    )


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "command",
    [["--version"], ["top", "--once"], ["export", "--format", "csv"]],
    ids=" ".join,
)
def test_closed_streams_are_no_error(place: Path, package_path: Path, command: list[str]) -> None:
    shell = ["sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable, "-c", LOOPCANARY, *command]
    environment = {**os.environ, "PYTHONPATH": str(package_path)}
    done = subprocess.run(shell, cwd=place, env=environment, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_leaves_is_no_error(filled: Store, place: Path, package_path: Path) -> None:
    filled.put([], [stall(id=f"s1-{i}", fingerprint=f"f{i}") for i in range(200)])
    filled.close()
    command = subprocess.Popen(
        [sys.executable, "-c", LOOPCANARY, "report", "--limit", "0"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(package_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    command.stdout.read(10)
    command.stdout.close()
    assert command.stderr is not None
    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait(timeout=280) == 0


# ---- report ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("place")
def test_without_a_store_nothing_is_found_and_none_is_made(capsys: Captured, place: Path) -> None:
    for command in (["report"], ["show", "x"], ["clean", "--all", "--yes"]):
        assert main(command) == 1
        assert "there is no store in" in told(capsys)
    assert list(place.iterdir()) == []


def test_the_report_shows_what_is_stored(filled: Store, capsys: Captured) -> None:
    assert main(["report", "--store", str(filled.folder)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("2 stalls in 2 bugs, 7.72 s in all; watched for 77.3 s\n")
    assert "/srv/shop/orders.py:87 in Orders.load_orders" in captured.out
    assert "Details of a bug: loopcanary show 1\n" in captured.out
    assert "\x1b" not in captured.out
    assert captured.err == ""


def test_the_command_for_details_names_the_store(filled: Store, capsys: Captured, place: Path) -> None:
    filled.folder.rename(place / "two words")
    assert main(["report", "two words"]) == 0
    assert f"Details of a bug: loopcanary show 1 --store '{place}/two words'\n" in capsys.readouterr().out


def test_the_command_for_details_names_the_bug_of_a_part(filled: Store, capsys: Captured) -> None:
    assert main(["report", "--store", str(filled.folder), "--cause", KILLED.cause.value]) == 0
    assert f"Details of a bug: loopcanary show {KILLED.fingerprint}\n" in capsys.readouterr().out


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["s1-2", "s1-1"]),
        (["--cause", "lock", "--cause", "gil"], ["s1-2"]),
        (["--text", "CHECKOUT"], ["s1-2"]),
        (["--since", "2023-11-14T22:14:00+00:00"], ["s1-2"]),
        (["--until", "2023-11-14T22:14:00Z"], ["s1-1"]),
        (["--limit", "1"], ["s1-2"]),
        (["--limit", "0"], ["s1-2", "s1-1"]),
        (["--run", "s1"], ["s1-2", "s1-1"]),
    ],
)
def test_filters(capsys: Captured, options: list[str], ids: list[str]) -> None:
    assert main(["report", "--format", "json", *options]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["stalls"]] == ids


@pytest.mark.usefixtures("filled")
def test_a_filter_that_finds_nothing_is_status_1(capsys: Captured) -> None:
    assert main(["report", "--since", "2h"]) == 1
    assert capsys.readouterr().out == "No stall matches.\n"
    assert main(["report", "--since", "2h", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["stalls"] == []


def test_a_clean_record_is_no_failure(store: Store, capsys: Captured) -> None:
    store.put_session(SESSION)
    assert main(["report"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        f"No stall was recorded.\nstore {store.folder}\nDoes it hang? `loopcanary dump PID`"
    )
    assert "MainThread  10 %      340 ms" in shown
    assert main(["report", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## No stall was recorded.\n")


@pytest.mark.usefixtures("filled")
def test_markdown_is_for_an_issue_tracker(capsys: Captured) -> None:
    assert main(["report", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("## 2 stalls in 2 bugs, 7.72 s in all; watched for 77.3 s\n")


def test_what_runs_now_is_shown_and_not_stored(
    filled: Store, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Recovery(running=[session(id="now")], ongoing=[stall(id="now-1")], notices=["a notice"])
    monkeypatch.setattr("loopcanary.assembly.store.recover", lambda _: live)
    assert main(["report", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "now-1" in captured.out
    assert captured.err == "loopcanary: a notice\n"
    assert filled.reader.issue("now-1") is None


@pytest.mark.usefixtures("filled")
def test_a_store_that_cannot_be_written_can_be_read(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Store) -> Recovery:
        raise StoreError("it cannot be written")

    monkeypatch.setattr("loopcanary.assembly.store.recover", fail)
    assert main(["report"]) == 0
    assert told(capsys) == "loopcanary: flight files of killed programs were not stored: it cannot be written"


def test_a_damaged_store_is_said(filled: Store, capsys: Captured) -> None:
    filled.path.write_bytes(b"nonsense" * 1_000)
    assert main(["report"]) == 0
    assert "is damaged" in told(capsys)


def test_names_that_the_terminal_lacks_do_not_end_the_report(
    store: Store, loopcanary: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    store.put_issue(hostile_stall("größe \udcff 名前"))
    store.close()
    result = loopcanary("report", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert result.returncode == 0
    assert result.stdout.isascii()
    assert result.stderr == ""


# ---- show -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("which", ["1:dead", "1:d", "s1-2", "dead", "de"])
def test_show_takes_fingerprints_ids_and_their_starts(capsys: Captured, which: str) -> None:
    assert main(["show", which]) == 0
    shown = capsys.readouterr().out
    assert "lock.acquire() in flush" in shown
    assert "killed during this stall" in shown


@pytest.mark.parametrize("which", ["s1-jank-1", "s1-jank", "jank:0123456789ab", "jank"])
def test_show_takes_issues_that_are_no_stalls(filled: Store, capsys: Captured, which: str) -> None:
    for issue in ISSUES:
        filled.put_issue(issue)
    filled.close()
    assert main(["show", which]) == 0
    shown = capsys.readouterr().out
    assert "47 of 60 fps in boss" in shown
    assert "worst frames" in shown
    assert main(["show", which, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in document["issues"]] == ["s1-jank-1"]
    assert [one["id"] for one in document["stalls"]] == ["s1-1"]


def test_a_start_of_stalls_and_of_other_issues_is_ambiguous(filled: Store, capsys: Captured) -> None:
    filled.put_issue(ISSUES[0])
    filled.close()
    assert main(["show", "s1-"]) == 2
    assert told(capsys) == "loopcanary: s1- is ambiguous: s1-1, s1-2, s1-jank-1 begin so; write more of it"


def test_a_report_of_jank_alone_is_no_empty_one(store: Store, capsys: Captured) -> None:
    store.put_issue(ISSUES[0])
    store.close()
    assert main(["report", "--text", "boss"]) == 0
    assert "jank:0123456789ab" in capsys.readouterr().out


def test_an_id_in_full_is_meant_where_others_begin_with_it(store: Store, capsys: Captured) -> None:
    store.put([SESSION], [STALL, stall(id="s1-10")])
    assert main(["show", "s1-1", "--format", "json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["stalls"]] == ["s1-1"]


@pytest.mark.usefixtures("filled")
def test_an_ambiguous_start_names_the_candidates(capsys: Captured) -> None:
    assert main(["show", "1:"]) == 2
    assert told(capsys) == "loopcanary: 1: is ambiguous: 1:dead, 1:f00d begin so; write more of it"


def test_the_rank_of_a_report_is_enough(filled: Store, capsys: Captured) -> None:
    ranking = [group.fingerprint for group in filled.reader.groups(STALLS)]
    filled.close()
    assert len(ranking) > 1
    for rank, fingerprint in enumerate(ranking, 1):
        assert main(["show", str(rank), "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert [group["fingerprint"] for group in document["groups"]] == [fingerprint]
    for beyond in ("0", str(len(ranking) + 1)):
        assert main(["show", beyond]) == 1
        assert f"has no bug number {beyond}; `loopcanary report` shows the numbers" in told(capsys)


@pytest.mark.usefixtures("filled")
def test_an_unknown_one_is_not_found(capsys: Captured) -> None:
    assert main(["show", "zzz\x1b[2J"]) == 1
    assert "begins with zzz\\x1b[2J; `loopcanary report` shows them" in told(capsys)


@pytest.mark.parametrize(
    "asked",
    [
        ["show", "99"],
        ["show", "zzz"],
        ["export", "--format", "csv", "--bug", "zzz"],
        ["clean", "--bug", "zzz"],
    ],
)
def test_the_command_that_an_error_names_works(
    asked: list[str], store: Store, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put([SESSION], [STALL])
    store.close()
    elsewhere = (store.folder.parent / "a b").resolve()
    store.folder.rename(elsewhere)
    monkeypatch.chdir(tmp_path)
    assert main([*asked, "--store", str(elsewhere)]) == 1
    named = told(capsys).split("`")[1]
    assert main(shlex.split(named)[1:]) == 0
    assert STALL.fingerprint in capsys.readouterr().out


# ---- clean ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--keep", "1"], ["s1-2"]),
        (["--older-than", "1d"], ["s1-9"]),
        (["--bug", "1:f00d"], ["s1-2"]),
        (["--all", "--yes"], []),
    ],
)
def test_clean(store: Store, capsys: Captured, options: list[str], left: list[str]) -> None:
    newest = [stall(id="s1-9", fingerprint="n", began_wall_ns=time.time_ns())] if "1d" in options else []
    store.put([SESSION], [STALL, KILLED, *newest])
    before = store.reader.totals(STALLS).issues
    assert main(["clean", *options]) == 0
    assert [one.id for one in store.reader.issues(STALLS)] == left
    gone = before - len(left)
    assert capsys.readouterr().out == f"Deleted {gone} stall{'' if gone == 1 else 's'}.\n"
    store.close()


def test_clean_takes_the_start_of_a_bug(store: Store) -> None:
    store.put([SESSION], [STALL, KILLED, stall(id="s1-9", fingerprint="1:f000")])
    assert main(["clean", "--bug", "zzz"]) == 1
    assert main(["clean", "--bug", "1:f0"]) == 2
    assert main(["clean", "--bug", "f00d"]) == 0
    assert {one.id for one in store.reader.issues(STALLS)} == {"s1-2", "s1-9"}


def test_clean_takes_ids(store: Store, capsys: Captured) -> None:
    store.put([SESSION], [STALL, KILLED])
    assert main(["clean", "--id", STALL.id, "--id", "nothing"]) == 0
    assert capsys.readouterr().out == "Deleted 1 record.\n"
    assert [one.id for one in store.reader.issues(STALLS)] == [KILLED.id]


def test_clean_takes_each_store_in_turn(filled: Store, place: Path, capsys: Captured) -> None:
    other = Store(place / "other", retention=Retention(age_ns=1 << 62))
    other.put([SESSION], [STALL])
    assert main(["clean", "--bug", "1:dead", ".loopcanary", "--store", "other"]) == 0
    assert capsys.readouterr().out == (
        f"{filled.folder}: Deleted 1 stall.\n{other.folder}: Deleted 0 stalls.\n"
    )
    other.close()


@pytest.mark.parametrize("answer", [(b"n\n", 130, 2), (b"y\n", 0, 0)], ids=["no", "yes"])
def test_deleting_all_asks_first(
    filled: Store, place: Path, package_path: Path, answer: tuple[bytes, int, int]
) -> None:
    typed, status, left = answer
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    result = subprocess.run(
        [sys.executable, "-c", LOOPCANARY, "clean", "--all"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(package_path)},
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert "Delete 2 stalls in" in result.stderr
    assert result.returncode == status
    assert filled.reader.totals(STALLS).issues == left
    filled.close()


# ---- doctor ---------------------------------------------------------------------------------------


def test_doctor_lists_and_judges(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "loopcanary.assembly.doctor.doctor_facts", lambda _: [("engine", "ok", "native"), ("gc", "off", "")]
    )
    monkeypatch.setattr(
        "loopcanary.assembly.doctor.self_test", lambda: ("self-test", "problem", "not \x1b[31mseen")
    )
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert shown == "engine     ok       native\ngc         off    \nself-test  problem  not \\x1b[31mseen\n"
    assert main(["doctor", "--no-self-test"]) == 0


def test_doctor_wraps_on_a_terminal_only(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = ", ".join(["asyncio"] * 12)
    monkeypatch.setattr("loopcanary.assembly.doctor.doctor_facts", lambda _: [("loops", "ok", loops)])
    monkeypatch.setenv("COLUMNS", "80")
    for is_terminal, lines in (("", 1), ("1", 2)):
        monkeypatch.setenv("FORCE_COLOR", is_terminal)
        assert main(["doctor", "--no-self-test"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == lines


def test_doctor_reads_the_stores_that_are_named(filled: Store, place: Path, capsys: Captured) -> None:
    (place / "broken" / "loopcanary.db").mkdir(parents=True)
    assert main(["doctor", "--no-self-test", ".loopcanary", "broken"]) == 1
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert ["store", "ok", f"{filled.folder}: 2 stalls in 2 bugs"] in rows
    assert [row[1] for row in rows if row[0] == "store"] == ["ok", "ok", "problem"]


@pytest.mark.usefixtures("filled")
def test_a_store_that_is_named_twice_counts_once(place: Path, capsys: Captured) -> None:
    (place / "link").symlink_to(".loopcanary")
    totals = []
    for names in ([], [".loopcanary", "./.loopcanary/", "--store", "link"]):
        assert main(["report", "--format", "json", *names]) == 0
        totals.append(json.loads(capsys.readouterr().out)["totals"])
    assert totals[0] == totals[1]
