from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.building.stalls import BEGAN, HOSTILE, KILLED, STALL, S, hostile_stall, session, stall

from loopcanary import whose_stderr
from loopcanary.model import (
    Cause,
    Contributor,
    Holder,
    LockProof,
    Severity,
    Stall,
    StallState,
    Target,
    TargetKind,
)
from loopcanary.protocols.plugins import Look
from loopcanary.reporters import terminal as terminal_module
from loopcanary.reporters.blocks import stall_block
from loopcanary.reporters.console import ConsoleReporter
from loopcanary.reporters.terminal import Terminal

GOLDEN = Path(__file__).parent / "golden"
PLAIN = Look(folder="/srv/shop")
ENDED = session(ended_wall_ns=BEGAN + 32_300_000_000)


class Screen:
    """A terminal that takes everything, or nothing."""

    def __init__(self, look: Look = PLAIN) -> None:
        self.blocks: list[str] = []
        self.dropped = 0
        self._look = look

    def write(self, block: str) -> bool:
        self.blocks.append(block)
        return True

    def look(self) -> Look:
        return self._look

    @property
    def text(self) -> str:
        return "".join(self.blocks)


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reporter(screen: Screen, clock: Clock) -> ConsoleReporter:
    return ConsoleReporter(terminal=screen, monotonic_ns=clock, announce_clean=False)  # type: ignore[arg-type]


def golden(name: str, text: str) -> None:
    """Compares with the file; LOOPCANARY_GOLDEN=1 writes it instead, to be looked at and committed."""
    path = GOLDEN / name
    if os.environ.get("LOOPCANARY_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# ---- what is said -------------------------------------------------------------------------------------

ONGOING = stall(
    id="s1-7",
    fingerprint="1:beef",
    state=StallState.ONGOING,
    severity=Severity.ANR,
    duration_ns=5_020_000_000,
    cause=Cause.GIL,
    confidence=0.75,
    thread="worker-2",
    holder=KILLED.holder,
    advice=None,
)


def test_a_run_reads_as_a_calm_story(reporter: ConsoleReporter, screen: Screen, clock: Clock) -> None:
    reporter.report(STALL, 0)
    reporter.report(stall(id="s1-3"), 1)
    clock.now_ns = 6 * S
    reporter.report(stall(id="s1-4"), 2)
    reporter.report(ONGOING, 0)
    clock.now_ns = 9 * S
    reporter.report(replace(ONGOING, state=StallState.ENDED, duration_ns=7 * S), 0)
    reporter.report(stall(id="s1-8", fingerprint="1:none", culprit=None, cause=Cause.UNKNOWN, advice=None), 0)
    reporter.close(ENDED, [])
    golden("run.txt", screen.text)


LOCKED = stall(
    cause=Cause.LOCK,
    second_cause=Cause.DISK_IO,
    second_share=0.3,
    waited_on=Target(kind=TargetKind.FILE, name="/var/lib/shop.db"),
    holder=Holder(thread="pool-1", culprit=None, share=0.7, lock="RLock", proof=LockProof.OWNER),
    holders=(
        Holder(thread="pool-1", culprit=None, share=0.7, lock="RLock", proof=LockProof.OWNER),
        Holder(thread="pool-2", culprit=None, share=0.3, lock="RLock", proof=LockProof.OWNER),
    ),
)
JOINED = stall(
    cause=Cause.LOCK,
    holder=Holder(thread="audit", culprit=None, lock="thread", proof=LockProof.OWNER),
)
BURST = stall(
    cause=Cause.BURST,
    contributors=tuple(
        Contributor(name=name, count=count, total_ns=count * S // 5_000, longest_ns=S // 1_000)
        for name, count in (("Feed.poll", 1_100), ("tick", 90), ("flush", 3))
    ),
)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (LOCKED, "waited on file /var/lib/shop.db; held by thread pool-1 for 70 % and 1 more"),
        (JOINED, "waited for thread audit"),
        (BURST, "mostly Feed.poll x1,100, 220 ms, tick x90, 18.0 ms"),
    ],
    ids=["a lock", "the end of a thread", "a burst"],
)
def test_what_it_waited_for_takes_one_line_more(one: Stall, said: str) -> None:
    block, plain = stall_block(one, PLAIN).splitlines(), stall_block(STALL, PLAIN).splitlines()
    assert [line.strip() for line in block if line not in plain][1:] == [said]
    assert len(block) == len(plain) + 1


def test_a_second_cause_is_in_the_headline() -> None:
    assert (
        stall_block(LOCKED, PLAIN)
        .splitlines()[0]
        .endswith("lock (certain): waiting for a lock; 30 % disk-io")
    )


def test_colours_mark_what_matters(screen: Screen) -> None:
    golden("colour.txt", stall_block(KILLED, Look(colour=True, links=True, folder="/srv/shop")))


def test_repeats_are_printed_every_few_seconds_only(
    reporter: ConsoleReporter, screen: Screen, clock: Clock
) -> None:
    for i in range(100):
        clock.now_ns = i * S // 10
        reporter.report(stall(id=f"s1-{i}"), i)
    assert len(screen.blocks) == 2
    assert screen.blocks[1].startswith(
        "[loopcanary] again: 412 ms at orders.py:87 in load_orders (51 stalls, 21.0 s in all)"
    )


def test_workers_of_one_stderr_tell_a_bug_in_full_once(screen: Screen, clock: Clock) -> None:
    quiet: dict[str, int] = {}
    for name in ("one", "other", "third"):
        worker = ConsoleReporter(
            terminal=screen,  # type: ignore[arg-type]
            process=name,
            monotonic_ns=lambda: clock.now_ns,
            quiet=quiet,
        )
        worker.report(STALL, 0)
        clock.now_ns += 3 * S
    first, again = screen.blocks
    assert "try:" in first
    assert again.startswith("[loopcanary] again: 412 ms at orders.py:87 in load_orders")
    assert again.endswith(", in third\n")


def test_a_stall_in_progress_is_counted_once(reporter: ConsoleReporter, screen: Screen) -> None:
    reporter.report(ONGOING, 0)
    reporter.report(replace(ONGOING, state=StallState.ENDED, duration_ns=9 * S), 0)
    reporter.close(ENDED, [])
    assert "1 stall in 1 bug, 9.00 s in all" in screen.text
    assert "[loopcanary] ended after 9.00 s: " in screen.text


def test_the_end_of_a_stall_corrects_what_was_said_while_it_lasted(
    reporter: ConsoleReporter, screen: Screen
) -> None:
    reporter.report(ONGOING, 0)
    assert ONGOING.culprit is not None
    line = replace(ONGOING.culprit, line=ONGOING.culprit.line + 1)
    known = {"cause": Cause.NATIVE_CPU, "culprit": line, "state": StallState.ENDED}
    reporter.report(replace(ONGOING, **known), 0)
    reporter.close(ENDED, [])
    over, *summary = screen.text.partition("ended after ")[2].splitlines()
    place = f"{line.file.rpartition('/')[2]}:{line.line}"
    assert f"{place} in " in over
    assert "; native-cpu (" in over
    (row,) = [words for words in summary if f"{place} in " in words]
    assert "native-cpu" in row


def test_a_clean_run_says_so_if_started_by_hand(screen: Screen) -> None:
    ConsoleReporter(terminal=screen).close(ENDED, [])  # type: ignore[arg-type]
    assert screen.text == ""
    ConsoleReporter(terminal=screen, announce_clean=True).close(ENDED, [])  # type: ignore[arg-type]
    assert screen.text.startswith("[loopcanary] no stall over 100 ms in this process, in a run of 42.3 s\n")


def test_no_stall_is_said_only_where_none_was_seen(screen: Screen) -> None:
    run = replace(ENDED, statistics={"stalls_undiagnosed": 2, "stalls_suppressed_storm": 3})
    ConsoleReporter(terminal=screen, announce_clean=True).close(run, [])  # type: ignore[arg-type]
    first, second, *_ = screen.text.splitlines()
    assert first == "[loopcanary] no reported stall over 100 ms in this process, in a run of 42.3 s"
    why = "2 because loopcanary failed to diagnose them, 3 over the limit of stalls a minute"
    assert second == f"  not reported: {why}"


def test_what_was_not_reported_is_said_beside_what_was(reporter: ConsoleReporter, screen: Screen) -> None:
    reporter.report(STALL, 0)
    reporter.close(replace(ENDED, statistics={"stalls_dropped_no_slot": 1}), [])
    (said,) = [line for line in screen.text.splitlines() if "not reported" in line]
    assert said.startswith("  not reported: 1 lost (")


def test_the_last_line_names_the_store(
    screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for store, words in ((tmp_path / ".loopcanary", ""), (Path("/srv/a b"), " --store '/srv/a b'")):
        reporter = ConsoleReporter(terminal=screen, store=store, announce_clean=False)  # type: ignore[arg-type]
        monkeypatch.chdir("/")  # as programs do
        reporter.report(STALL, 0)
        reporter.close(ENDED, [])
        assert screen.text.splitlines()[-1] == f"  more: loopcanary report{words}"


def test_where_nothing_could_be_stored_no_report_is_promised(screen: Screen) -> None:
    reporter = ConsoleReporter(terminal=screen, announce_clean=False)  # type: ignore[arg-type]
    reporter.report(STALL, 0)
    reporter.report(replace(STALL, id="another"), 1)
    some, none = (replace(ENDED, statistics={"failures_store": failures}) for failures in (1, 2))
    reporter.close(some, [])
    assert screen.text.splitlines()[-1] == "  more: loopcanary report"
    reporter.close(none, [])
    (line,) = [line for line in screen.text.splitlines() if "not stored: the store failed" in line]
    assert "more:" not in line


def test_stalls_by_the_host_in_several_places_have_none(reporter: ConsoleReporter, screen: Screen) -> None:
    assert STALL.culprit is not None
    title = "the host did not run the ready thread"
    reporter.report(stall(id="a", cause=Cause.HOST, title=title), 0)
    other = replace(STALL.culprit, qualname="other")
    reporter.report(stall(id="b", cause=Cause.HOST, title=title, culprit=other), 1)
    reporter.close(ENDED, [])
    [row] = [line for line in screen.text.splitlines() if "  host  " in line]
    assert row.endswith(f"host   {title}")


def test_the_summary_names_a_bug_by_time_and_confidence(reporter: ConsoleReporter, screen: Screen) -> None:
    guess = {"cause": Cause.NATIVE_CPU, "confidence": 0.24, "duration_ns": S}
    sure = {"cause": Cause.SLEEP, "confidence": 0.98, "duration_ns": S // 3}
    for number, changes in enumerate((guess, sure, sure)):
        reporter.report(stall(id=f"s1-{number}", **changes), 0)
    reporter.close(ENDED, [])
    [row] = [line for line in screen.text.splitlines() if line.strip().startswith("1.67 s")]
    assert row.split()[2:6] == ["3", "1.00", "s", "sleep"]


def test_a_line_that_the_host_struck_is_not_underlined(reporter: ConsoleReporter, screen: Screen) -> None:
    assert STALL.culprit is not None
    assert STALL.culprit.source is not None
    reporter.report(stall(cause=Cause.HOST, title="the host did not run the ready thread"), 0)
    assert f":{STALL.culprit.line} in {STALL.culprit.qualname}" in screen.text
    assert "    it was on this line when it lost the CPU\n" in screen.text
    assert STALL.culprit.source not in screen.text
    assert "^" not in screen.text


def test_nothing_is_said_of_a_process_that_ran_no_loop(screen: Screen) -> None:
    ConsoleReporter(terminal=screen, announce_clean=True).close(session(loops=()), [])  # type: ignore[arg-type]
    assert screen.text == ""


@pytest.mark.parametrize("process", ["", "worker.py (pid 12)"], ids=["program", "child"])
def test_a_child_says_who_it_is(screen: Screen, process: str) -> None:
    reporter = ConsoleReporter(terminal=screen, process=process)  # type: ignore[arg-type]
    reporter.report(STALL, 0)
    reporter.report(stall(id="s1-3", state=StallState.ONGOING), 1)
    reporter.report(stall(id="s1-3"), 1)
    reporter.close(ENDED, [])
    assert [", in worker.py (pid 12)" in block for block in screen.blocks] == [bool(process)] * 4


def test_a_hang_that_turns_out_to_be_another_bug_counts_once(screen: Screen) -> None:
    reporter = ConsoleReporter(terminal=screen, announce_clean=False)  # type: ignore[arg-type]
    reporter.report(stall(id="s1-9", state=StallState.ONGOING, fingerprint="seen first"), 0)
    reporter.report(stall(id="s1-9"), 0)
    reporter.close(ENDED, [])
    assert screen.blocks[-1].startswith("[loopcanary] 1 stall in 1 bug, ")


def test_what_another_process_reported_is_counted_only(screen: Screen) -> None:
    reporter = ConsoleReporter(terminal=screen, announce_clean=False)  # type: ignore[arg-type]
    reporter.recall(STALL)
    assert screen.blocks == []
    reporter.report(stall(id="s1-9"), 1)
    assert "again: " in screen.blocks[0]
    assert "2 stalls" in screen.blocks[0]


def test_fingerprints_without_end_do_not_make_it_grow(reporter: ConsoleReporter) -> None:
    for i in range(3_000):
        reporter.report(stall(id=f"s-{i}", fingerprint=f"f{i}"), 0)
    assert len(reporter._tallies) <= 1_001
    assert len(reporter._quiet_until_ns) <= 1_001
    assert sum(tally.count for tally in reporter._tallies.values()) == 3_000


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("look", [PLAIN, Look(colour=True, links=True)], ids=["plain", "coloured"])
def test_no_name_reaches_the_terminal_raw(text: str, look: Look) -> None:
    screen = Screen(look)
    reporter = ConsoleReporter(terminal=screen, announce_clean=False)  # type: ignore[arg-type]
    reporter.report(hostile_stall(text), 0)
    reporter.report(hostile_stall(text, 1), 0)
    reporter.close(ENDED, [])
    own = re.compile(r"\x1b\[[0-9;]+m|\x1b\]8;;(file://[A-Za-z0-9/._~%#-]*)?\x1b\\")
    shown = own.sub("", screen.text)
    assert (
        re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)
        is None
    )
    assert max(len(line) for line in shown.splitlines()) < 500
    assert "\x1b" in screen.text or not look.colour


# ---- where it is written ------------------------------------------------------------------------------


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def test_a_block_is_one_write(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = pipe
    calls: list[int] = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: (calls.append(len(data)), real(fd, data))[1])
    assert Terminal(write).write(stall_block(STALL, PLAIN))
    assert len(calls) == 1
    assert os.read(read, 65_536).decode() == stall_block(STALL, PLAIN)


def test_a_reader_who_does_not_read_costs_blocks_and_never_time(pipe: tuple[int, int]) -> None:
    _, write = pipe
    terminal = Terminal(write)
    began = time.monotonic()
    shown = [terminal.write("x" * 100 + "\n") for _ in range(1_000)]
    assert 0 < sum(shown) < 1_000
    assert terminal.dropped == 1_000 - sum(shown)
    assert time.monotonic() - began < 120
    assert fcntl.fcntl(write, fcntl.F_GETFL) & os.O_NONBLOCK == 0


def test_a_reader_who_left_costs_blocks_and_nothing_else(pipe: tuple[int, int]) -> None:
    read, write = pipe
    terminal = Terminal(write)
    os.close(read)
    assert not terminal.write("hello\n")
    assert terminal.dropped == 1


def test_a_reused_descriptor_is_not_ours(tmp_path: Path) -> None:
    read, write = os.pipe()
    terminal = Terminal(write)
    os.close(write)
    assert not terminal.write("lost\n")
    mine = tmp_path / "data"
    descriptor = os.open(mine, os.O_WRONLY | os.O_CREAT)
    assert descriptor == write
    assert not terminal.write("not into their file\n")
    os.close(descriptor)
    os.close(read)
    assert mine.read_bytes() == b""
    assert terminal.dropped == 2


def test_names_that_the_encoding_lacks_are_escaped(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stderr:
        encoding = "ascii"

    monkeypatch.setattr(sys, "stderr", Stderr())
    read, write = pipe
    assert Terminal(write).write("größe\n")
    assert os.read(read, 100) == b"gr\\xf6\\xdfe\n"


def test_without_a_stderr_nothing_is_shown_and_nothing_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    terminal = Terminal(987_654)
    assert not terminal.write("hello\n")
    assert terminal.look() == Look(folder=str(Path.cwd()))


@pytest.mark.parametrize(
    ("environ", "colour", "links"),
    [
        ({"TERM": "xterm-256color"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "linux"}, True, False),
    ],
)
def test_colours_and_links_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], colour: bool, links: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    look = Terminal(theirs).look()
    os.close(ours)
    os.close(theirs)
    assert (look.colour, look.links) == (colour, links)


def test_a_pipe_gets_neither_colours_nor_links(pipe: tuple[int, int]) -> None:
    assert Terminal(pipe[1]).look() == Look(folder=str(Path.cwd()))


def test_a_program_whose_terminal_is_stopped_goes_on(tree: Path, package_path: Path) -> None:
    """A pty that nobody reads fills up; the reporter must come to its end all the same."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.building.stalls import stall\n"
        "from loopcanary.reporters.console import ConsoleReporter\n"
        "from loopcanary.reporters.terminal import Terminal\n"
        "reporter = ConsoleReporter(terminal=Terminal())\n"
        "for i in range(200): reporter.report(stall(id=str(i), fingerprint=str(i)), 0)\n"
        "print(reporter.dropped)\n"
    )
    ours, theirs = pty.openpty()
    result = subprocess.run(
        [sys.executable, "-c", code, str(tree)],
        env={**os.environ, "PYTHONPATH": str(package_path)},
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        timeout=280,
        check=True,
    )
    os.close(theirs)
    assert int(result.stdout) > 0
    assert select.select([ours], [], [], 0)[0]
    os.close(ours)


def test_a_cut_block_is_completed_before_the_next(pipe: tuple[int, int]) -> None:
    read, write = pipe
    terminal = Terminal(write)
    block = "".join(f"line {i}\n" for i in range(20_000))
    assert terminal.write(block)
    received = os.read(read, 1 << 20)
    while received.count(b"\n") < 20_000:
        terminal.write("next\n")
        received += os.read(read, 1 << 20)
    assert received.decode().startswith(block)
    assert received.decode().removeprefix(block).replace("next\n", "") == ""


def test_a_stderr_that_cannot_be_opened_anew_is_polled() -> None:
    """A service's stderr is a socket to its journal."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        terminal = Terminal(theirs.fileno())
        assert terminal.write("hello\n")
        assert ours.recv(100) == b"hello\n"
        for _ in range(1_000):
            terminal.write("x" * 1_000)
        assert terminal.dropped > 0


def test_a_child_speaks_where_its_stderr_is_that_of_the_program(
    pipe: tuple[int, int], package_path: Path
) -> None:
    told = {whose_stderr.STDERR: whose_stderr.own_stderr()}
    assert whose_stderr.may_speak()
    code = "from loopcanary.whose_stderr import may_speak; print(may_speak())"

    def child(stderr: int | None, told: dict[str, str]) -> str:
        environment = {"PYTHONPATH": str(package_path), **told}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=stderr, check=True
        )
        return done.stdout.decode().strip()

    # pytest may have given this process a stderr of its own, which children inherit.
    assert child(None, told) == "True"
    assert child(pipe[1], told) == "False"
    assert child(pipe[1], {}) == "True"
    assert child(None, {whose_stderr.STDERR: f"{os.getpid()}:"}) == "False"


def test_a_full_terminal_gets_what_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError

    ours, theirs = pty.openpty()
    terminal = Terminal(theirs)
    monkeypatch.setattr(terminal_module, "_send_nonblocking", refuse)
    for _ in range(300):
        terminal.write("x" * 99 + "\n")
    os.close(theirs)
    os.close(ours)
    assert terminal.dropped > 0


def test_the_reporter_imports_nothing_heavy(package_path: Path) -> None:
    code = "import sys, loopcanary.reporters.console as c; print(*sorted(sys.modules))"
    modules = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(package_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {"rich", "click", "asyncio", "logging", "sqlite3", "textwrap", "pathlib"} & set(modules) <= {
        "pathlib"
    }
