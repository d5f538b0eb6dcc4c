"""Calls that took too long outside of stalls: which they are, their trees, and that each is told once."""

from __future__ import annotations

import random
import signal
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.methods.test_programs import GIVES_UP_S, Program

from loopcanary.flight.beside import calls_format as layout
from loopcanary.flight.beside.calls import CallsFile, Window
from loopcanary.flight.beside.slow_calls import SlowCall, SlowCalls
from loopcanary.flight.header import TickClock
from loopcanary.flight.source import open_source
from loopcanary.model.method_map import CALLS, MAGIC, METHODS, Method, record_of

native = pytest.importorskip("loopcanary._native", reason="needs the C core")
pytestmark = pytest.mark.native

US, MS = 1_000, 1_000_000
IN = 1 << 63
WORDS = layout.WORDS_LEAST
CLOCK = TickClock(anchor_ticks=0, anchor_ns=0, rate_q32=1 << 32)
OPTIONS = ("--methods", ".", "--slow-method", "200ms")
NAMES = {1: "<module>", 2: "main", 3: "load", 4: "parse"}


# ---- files ------------------------------------------------------------------------------------


class Thread:
    """Writes a file of calls, a microsecond a step, as native/core/methods/calls.c does."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "a.flight")
        self.now = 0
        self.words: list[int] = []
        self.open: list[tuple[int, int]] = []
        self.slow: list[tuple[int, int, int, int]] = []

    def enter(self, number: int) -> None:
        self.words.append(IN | number << layout.TIME_BITS | self.now)
        self.open.append((number, self.now))

    def leave(self, *, is_slow: bool = False) -> None:
        number, began = self.open.pop()
        self.words.append(number << layout.TIME_BITS | self.now)
        if is_slow:
            self.slow.append((number, began, self.now, len(self.words)))

    def write(self, **header: int) -> str:
        fields = {
            "magic": layout.MAGIC,
            "version": layout.VERSION,
            "byte_order": layout.BYTE_ORDER,
            "file_bytes": layout.WORDS_OFFSET + 8 * WORDS,
            "words": WORDS,
            "tid": 7,
            "opened_ns": 1,
            "us_q64": -(-(1 << 64) // US),
            "written": len(self.words),
            "depth": len(self.open),
            "slow": len(self.slow),
            **header,
        }
        content = bytearray(layout.WORDS_OFFSET + 8 * WORDS)
        for name, at in layout.HEADER.offsets.items():
            value = fields.get(name, 0)
            size = 4 if name in ("version", "byte_order") else 8
            content[at : at + size] = value if isinstance(value, bytes) else value.to_bytes(size, "little")
        for count, one in enumerate(self.slow):
            struct.pack_into("<4Q", content, layout.SLOW_OFFSET + count % layout.SLOW_MAX * 32, *one)
        for count, opened in enumerate(self.open):
            struct.pack_into("<2Q", content, layout.OPEN_OFFSET + count * 16, *opened)
        for count, word in enumerate(self.words):
            struct.pack_into("<Q", content, layout.WORDS_OFFSET + count % WORDS * 8, word)
        Path(f"{self.path}{CALLS}0").write_bytes(content)
        names = [
            Method(number=number, qualname=name, file="/srv/a.py", line=1, is_trivial=False)
            for number, name in NAMES.items()
        ]
        Path(self.path + METHODS).write_bytes(MAGIC + b"".join(map(record_of, names)))
        return self.path

    def read(self, calls: SlowCalls | None = None) -> list[SlowCall]:
        return (calls or SlowCalls()).read(self.write(), CLOCK, native.call_tree, lambda _: True)

    def left_open(self, last_us: int, least_us: int = 100, **header: int) -> list[SlowCall]:
        return SlowCalls().left_open(
            self.write(**header),
            CLOCK,
            native.call_tree,
            lambda _: True,
            last_ns=last_us * US,
            least_ns=least_us * US,
            judged_ns={99: 10**18},
        )


def rows(call: SlowCall) -> list[tuple[str, int, int, int, bool]]:
    """Function, depth, calls, microseconds, whether one is open."""
    return [
        (row.frame.function, row.depth, row.calls, round(row.total_ns / US), row.open)
        for row in call.calls.rows
    ]


@pytest.fixture
def thread(tmp_path: Path) -> Thread:
    found = Thread(tmp_path)
    found.enter(1)
    found.enter(2)
    return found


def load(thread: Thread, parses: int) -> None:
    """A slow call of `load`."""
    thread.enter(3)
    for _ in range(parses):
        thread.enter(4)
        thread.now += 2
        thread.leave()
    thread.leave(is_slow=True)


def test_a_word_that_was_not_counted_yet_is_none(thread):
    """Its thread was killed between the two. It lies where the oldest word was."""
    while len(thread.words) < WORDS + 10:
        thread.enter(4)
        thread.now += 2
        thread.leave()
    thread.enter(3)
    thread.now += 200
    window = Window(begin_ns=(thread.now - 200) * US, end_ns=None, last_look_ns=thread.now * US)
    before = tree_in(thread.write(), window)
    thread.enter(4)
    thread.open.pop()
    assert tree_in(thread.write(written=len(thread.words) - 1), window) == before
    assert [row[:4] for row in before.rows][-1] == (1, 3, 1, 200 * US)


def tree_in(flight: str, window: Window) -> Any:
    source = open_source(f"{flight}{CALLS}0")
    try:
        return CallsFile(source, CLOCK).tree(window, native.call_tree)
    finally:
        source.close()


def test_neighbours_in_the_same_microsecond_are_not_in_the_tree(thread):
    load(thread, 100)
    load(thread, 150)
    load(thread, 50)
    first, second, _ = thread.read()
    assert rows(first) == [("load", 0, 1, 200, False), ("parse", 1, 100, 200, False)]
    assert rows(second) == [("load", 0, 1, 300, False), ("parse", 1, 150, 300, False)]
    assert (round(second.began_ns / US), round(second.duration_ns / US)) == (200, 300)
    assert (second.tid, second.began_us, second.calls.lost) == (7, 200, 0)


def test_each_is_read_once(thread):
    calls = SlowCalls()
    assert not calls.has_new(thread.path, CLOCK)
    load(thread, 10)
    assert len(thread.read(calls)) == 1
    assert not calls.has_new(thread.path, CLOCK)
    load(thread, 20)
    thread.write()
    assert calls.has_new(thread.path, CLOCK)
    [again] = thread.read(calls)
    assert again.duration_ns == pytest.approx(40 * US, abs=1)


def test_what_was_overwritten_is_counted_and_the_length_known(thread):
    load(thread, WORDS)
    [call] = thread.read()
    name, depth, calls, length, _ = rows(call)[0]
    assert (name, depth, calls, length) == ("load", 0, 1, 2 * WORDS)
    assert rows(call)[1][2] < WORDS
    assert call.calls.lost >= WORDS


def test_a_call_of_which_all_was_overwritten_is_alone(thread):
    load(thread, 100)
    for _ in range(WORDS):
        thread.enter(4)
        thread.leave()
    [call] = thread.read()
    assert rows(call) == [("load", 0, 1, 200, False)]
    assert call.calls.lost >= 1


def test_only_the_last_of_very_many_are_read(thread):
    for parses in range(1, 101):
        load(thread, parses)
    found = thread.read()
    assert len(found) == layout.SLOW_MAX - 1  # one may be in the making
    assert found[-1].duration_ns == pytest.approx(200 * US, abs=1)


def test_the_innermost_call_that_was_open_is_reported(thread):
    thread.enter(3)
    thread.now += 400
    thread.enter(4)
    [call] = thread.left_open(450)
    assert rows(call) == [("load", 0, 1, 450, True), ("parse", 1, 1, 50, True)]


def test_the_main_module_is_no_slow_call(thread):
    thread.leave()
    assert thread.left_open(1_000) == []


def test_a_call_in_which_one_was_slow_is_none(thread):
    load(thread, 200)
    assert thread.left_open(5_000) == []


def test_threads_that_have_ended_or_are_judged_leave_none(thread):
    thread.now += 500
    assert thread.left_open(500) != []
    assert thread.left_open(500, closed_ns=1) == []
    assert thread.left_open(500, tid=99) == []


@pytest.mark.parametrize("seed", range(40))
def test_files_that_lie_break_nothing(thread, seed):
    load(thread, 100)
    thread.enter(3)
    path = Path(f"{thread.write()}{CALLS}0")
    chance = random.Random(seed)
    content = bytearray(path.read_bytes())
    for _ in range(200):
        at = chance.choice([chance.randrange(96, 4096), chance.randrange(len(content) - 8)])
        content[at : at + 8] = chance.randbytes(8)
    path.write_bytes(content)
    calls = SlowCalls()
    calls.has_new(thread.path, CLOCK)
    for call in calls.read(thread.path, CLOCK, native.call_tree, lambda _: True):
        assert call.duration_ns >= 0


# ---- programs: what they sleep for is the slow work itself ------------------------------------


def outside(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Slow methods that are no stalls."""
    return [one for one in report["issues"] if one["kind"] == "slow-method" and not one["stall_ids"]]


def told(program: Program, script: str, limit: str = "200ms", **settings: str) -> list[dict[str, Any]]:
    with program.start(script, *OPTIONS, "--slow-method", limit, **settings) as running:
        _, program.said = running.communicate(timeout=GIVES_UP_S)
    return outside(program.report())


SCRIPT = """
def parse():
    return sum(range(100))

def load():
    for _ in range(300):
        parse()
    time.sleep(0.3)

def main():
    load()

main()
"""


WAITS_FOR_ITS_KEEPER = """
import sys
if "loopcanary.assembly.kept" in sys.modules:
    sys.modules["loopcanary.assembly.kept"].END_PATIENCE_S = 60  # a keeper on a busy host
"""


@pytest.mark.parametrize("keeper", ["0", "1"], ids=["in-process", "keeper"])
def test_a_script_without_a_loop_has_its_slow_function(tmp_path, keeper):
    program = Program(tmp_path)
    [slow] = told(program, WAITS_FOR_ITS_KEEPER + SCRIPT, LOOPCANARY_KEEPER=keeper)
    assert [(row["function"], row["calls"], row["open"]) for row in slow["rows"]] == [
        ("load", 1, False),
        ("parse", 300, False),
    ]
    assert (slow["thread"], slow["loop"], slow["threshold_ms"]) == ("MainThread", "thread", 200)
    assert slow["culprit"]["function"] == "load"
    assert slow["duration_ms"] >= 300
    assert "slow method: load took" in program.said
    assert "1 slow method, in a run of" in program.said


def test_its_fingerprint_is_that_of_a_stall_there(tmp_path):
    program = Program(tmp_path)
    [slow] = told(program, SCRIPT.replace("\nmain()\n", "\nmain()\nloop(load)\n"))
    [stalled] = [
        one for one in program.report()["issues"] if one["kind"] == "slow-method" and one["stall_ids"]
    ]
    assert stalled["fingerprint"] == slow["fingerprint"]


def test_a_callback_is_its_stall_and_main_not_what_its_loop_does(tmp_path):
    script = """
def setup():
    time.sleep(1.1)

def handle():
    time.sleep(1.2)

def main():
    setup()
    loop(handle)

main()
"""
    program = Program(tmp_path)
    assert [one["culprit"]["function"] for one in told(program, script, limit="1s")] == ["setup"]
    by_stall = [one for one in program.report()["issues"] if one.get("stall_ids")]
    assert [one["culprit"]["function"] for one in by_stall] == ["handle"]


def test_main_is_not_slow_by_a_loop_without_traced_calls(tmp_path):
    script = """
def main():
    asyncio.run(asyncio.sleep(2.2))

main()
"""
    assert told(Program(tmp_path), script, limit="2s") == []


def test_the_program_itself_is_no_slow_method(tmp_path):
    assert told(Program(tmp_path), "time.sleep(0.4)") == []


def test_a_function_that_raises_is_reported(tmp_path):
    script = """
def fail():
    time.sleep(0.3)
    raise ValueError

try:
    fail()
except ValueError:
    pass
"""
    [slow] = told(Program(tmp_path), script)
    assert [(row["function"], row["open"]) for row in slow["rows"]] == [("fail", False)]


def test_a_program_s_own_code_sees_it(tmp_path):
    script = """
import loopcanary

@loopcanary.on_issue
def seen(issue):
    if issue.kind.value == "slow-method":
        print(issue.kind.value, issue.culprit.function, flush=True)

def work():
    time.sleep(0.3)

work()
"""
    program = Program(tmp_path)
    with program.start(script, *OPTIONS) as running:
        said, _ = running.communicate(timeout=GIVES_UP_S)
    assert said == "slow-method work\n"
    assert outside(program.report()) == []  # it was dropped


KILLED = """
import asyncio

def quick():
    time.sleep(0.01)

def work():
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        quick()
    quick()
    print("in it", flush=True)
    time.sleep(600)

def main():
    work()

"""


@pytest.mark.parametrize(
    "calls", ["main()", "asyncio.run(asyncio.sleep(0.01)); work()"], ids=["no loop", "after a loop"]
)
def test_a_call_in_which_a_program_was_killed_is_reported(tmp_path, calls):
    program = Program(tmp_path)
    with program.start(KILLED + calls, *OPTIONS) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "in it\n"
        running.send_signal(signal.SIGKILL)
        running.communicate(timeout=GIVES_UP_S)
    [slow] = outside(program.report())
    row = slow["rows"][0]
    assert (row["function"], row["open"]) == ("work", True)


def test_a_watched_threads_slow_function_is_reported(tmp_path):
    script = """
import loopcanary

def work():
    time.sleep(0.3)

def thread():
    with loopcanary.watch("first", threshold="10s"):
        pass
    work()

worker = threading.Thread(target=thread, name="worker")
worker.start()
worker.join()
"""
    [slow] = told(Program(tmp_path), script)
    assert (slow["thread"], slow["culprit"]["function"]) == ("worker", "work")
