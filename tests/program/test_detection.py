"""Every way to block a loop: seen once, at the right line, with the right cause and length.

The program blocks.py goes through all kinds in one process, with stamps of its own around each; it runs
once under each engine, and every test looks at one kind.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .watching import PROGRAMS, Marks, Watched, admitted, unexplained, wall_ns

BLOCKS = PROGRAMS / "blocks.py"
MARKS = Marks(BLOCKS.read_text())
NATIVE_TOLERANCE_MS = 1.0
PORTABLE_TOLERANCE_MS = 25.0
THRESHOLD_NS = 100_000_000
COMPUTING_UNSEEN = ("unknown",)


@dataclass(frozen=True, slots=True)
class Story:
    """A kind of block. `portable`: what else the portable engine, which lacks the kernel's view, may say."""

    sentence: str
    kind: str
    causes: tuple[str, ...]
    task: bool = True
    portable: tuple[str, ...] = ()


STORIES = [
    Story(
        "a regular expression that backtracks for ever", "regex", ("native-cpu",), portable=COMPUTING_UNSEEN
    ),
    Story("a large JSON body", "json_body", ("native-cpu",), portable=COMPUTING_UNSEEN),
    Story("a C call that sleeps with the GIL held", "c_call_with_the_gil", ("sleep",)),
    Story("a C call that sleeps with the GIL released", "c_call_without_the_gil", ("sleep",)),
    Story("a password hash", "password_hash", ("native-cpu",), portable=COMPUTING_UNSEEN),
    Story("compression", "compress", ("native-cpu",), portable=COMPUTING_UNSEEN),
    Story("a collection of a large heap", "collection", ("gc",)),
    Story("a loop in Python", "python_loop", ("cpu", "native-cpu"), portable=COMPUTING_UNSEEN),
    Story("the import of a large module", "slow_import", ("import",)),
    Story("time.sleep", "sleep", ("sleep",)),
    Story("a lock that a thread holds", "held_lock", ("lock",)),
    Story("an empty queue", "empty_queue", ("lock",)),
    Story("the join of a thread", "thread_join", ("lock",)),
    Story("subprocess.run", "child_process", ("subprocess",)),
    Story("writes that are synced to the disk", "synced_file", ("disk-io", "native-cpu")),
    Story("a protocol's data_received", "data_received", ("sleep",), task=False),
    Story("a handler of loop.add_signal_handler", "loop_signal_handler", ("sleep",), task=False),
    Story("a handler of signal.signal inside a task", "python_signal_handler", ("sleep",)),
    Story(
        "a handler of signal.signal while the loop waits",
        "signal_handler_while_the_loop_waits",
        ("sleep",),
        task=False,
        portable=("unknown",),
    ),
    Story("a timer of call_later", "timer", ("sleep",), task=False),
    Story("the body of an async generator", "async_generator", ("sleep",)),
    Story("the loop's exception handler", "exception_handler", ("sleep",), task=False),
    Story("a thousand short callbacks in one turn", "burst", ("burst",), task=False),
    Story("the first of two long callbacks in one turn", "first_of_two", ("sleep",), task=False),
    Story("the second of two long callbacks in one turn", "second_of_two", ("sleep",), task=False),
    Story("threads that compete for the GIL", "gil_hog", ("gil",), portable=COMPUTING_UNSEEN),
    Story(
        "a thread that holds the GIL while timers come due",
        "gil_taken_while_the_loop_waits",
        ("gil",),
        task=False,
        portable=COMPUTING_UNSEEN,
    ),
]
HOLDERS = {"gil_hog": "hog ", "gil_taken_while_the_loop_waits": "keeper of the gil"}
LOOPS_OF_TWO_LINES = {*HOLDERS, "burst"}
WITHOUT_CULPRIT = {"gil_taken_while_the_loop_waits"}
"""The loop's own line, which waits for the GIL, is nobody's."""

HOLDS_THE_GIL = {"regex", "json_body", "c_call_with_the_gil", "collection", "slow_import"}

# What the portable engine does not tell apart, as its list of blind spots says.
ONE_TURN = {"first_of_two", "second_of_two"}
UNSEEN_BY_PORTABLE = {"signal_handler_while_the_loop_waits", "gil_taken_while_the_loop_waits"}


class Run:
    """What one run of the program was, by its own account and by the report's."""

    def __init__(self, watched: Watched, folder: Path, tolerance_ms: float) -> None:
        self.tolerance_ms = tolerance_ms
        truth_file = folder / "truth.json"
        watched.run(BLOCKS, truth_file, folder, cwd=folder)
        self.truth = {facts["name"]: facts for facts in json.loads(truth_file.read_text())}
        self.report = watched.report()
        self.stalls = self.report["stalls"]

    def stalls_of(self, kind: str) -> list[dict[str, Any]]:
        """The stalls that the kind's time has a part in."""
        facts = self.truth[kind]
        return [
            stall
            for stall in self.stalls
            if wall_ns(stall["began_at"]) < facts["wall_after_ns"]
            and wall_ns(stall["began_at"]) + stall["duration_ms"] * 1e6 > facts["wall_before_ns"]
        ]

    def stall_of(self, kind: str) -> dict[str, Any]:
        """The one that holds the whole block. Beside it only the host may have stopped the thread."""
        stalls, facts = self.stalls_of(kind), self.truth[kind]
        inside_ms = (facts["end_ns"] - facts["begin_ns"]) / 1e6 if "begin_ns" in facts else 0.0
        holding = [stall for stall in stalls if stall["duration_ms"] > inside_ms - self.tolerance_ms]
        assert holding, stalls
        found = max(holding, key=lambda stall: self._overlap_ns(stall, facts))
        assert unexplained(stall for stall in stalls if stall is not found) == []
        return found

    @staticmethod
    def _overlap_ns(stall: dict[str, Any], facts: dict[str, Any]) -> float:
        """How much of the block is in it."""
        began_ns = wall_ns(stall["began_at"])
        block_ns = [
            facts["wall_before_ns"] + facts.get(name, facts[other]) - facts["before_ns"]
            for name, other in (("begin_ns", "before_ns"), ("end_ns", "after_ns"))
        ]
        return min(began_ns + stall["duration_ms"] * 1e6, block_ns[1]) - max(began_ns, block_ns[0])


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("native")
    return Run(Watched(store=folder / "store", engine="native"), folder, NATIVE_TOLERANCE_MS)


@pytest.fixture(scope="module")
def portable(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("portable")
    return Run(Watched(store=folder / "store", engine="portable"), folder, PORTABLE_TOLERANCE_MS)


def stories(*, without: set[str] = frozenset()):
    kept = [story for story in STORIES if story.kind not in without]
    return pytest.mark.parametrize("story", kept, ids=[story.sentence.replace(" ", "-") for story in kept])


def assert_line(culprit, role, kind):
    function, line = MARKS.find(f"{role} of {kind}")
    assert culprit["function"] == function
    # Of a loop of two lines, either: a thread lets go of the GIL where it jumps back.
    assert culprit["line"] in ((line, line + 1) if kind in LOOPS_OF_TWO_LINES else (line,))


def assert_length(run, kind):
    """Not shorter than the program measured inside the callback, not longer than outside."""
    stall, facts = run.stall_of(kind), run.truth[kind]
    outside_ms = (facts["after_ns"] - facts["before_ns"]) / 1e6
    assert stall["duration_ms"] < outside_ms + run.tolerance_ms
    if "begin_ns" in facts:
        inside_ms = (facts["end_ns"] - facts["begin_ns"]) / 1e6
        assert stall["duration_ms"] > inside_ms - run.tolerance_ms


def skip_where_the_host_made_the_stall(run, story):
    """A turn is a burst where none of its callbacks is a stall by itself."""
    longest_ns = run.truth[story.kind].get("longest_callback_ns", 0)
    if longest_ns >= THRESHOLD_NS:
        pytest.skip(f"the machine stopped a callback of half a millisecond for {longest_ns / 1e6:.0f} ms")


@pytest.mark.native
class TestTheNativeEngine:
    @stories()
    def test_sees_it_once_at_its_line_with_its_cause_and_length(self, native, story):
        skip_where_the_host_made_the_stall(native, story)
        stall = native.stall_of(story.kind)
        assert stall["state"] == "ended"
        assert_length(native, story.kind)
        assert stall["cause"] in admitted(stall, story.causes), stall["evidence"]
        if story.kind not in WITHOUT_CULPRIT:
            culprit = stall["culprit"]
            assert_line(culprit, "culprit", story.kind)
            assert Path(culprit["file"]).name == BLOCKS.name
            assert culprit["in_app"]

    @stories()
    def test_names_the_task_where_there_is_one(self, native, story):
        skip_where_the_host_made_the_stall(native, story)
        task = native.stall_of(story.kind)["callback"]["task"]
        if story.task:
            assert task == f"task of {story.kind}"
        else:
            assert task in (None, "driver")

    @pytest.mark.parametrize("kind", HOLDERS)
    def test_names_the_thread_that_held_the_gil_and_its_line(self, native, kind):
        stall = native.stall_of(kind)
        if stall["cause"] == "gil":  # as another test wants it, but on a crowded machine
            assert stall["holder"]["thread"].startswith(HOLDERS[kind])
            assert_line(stall["holder"]["culprit"], "holder", kind)

    def test_sees_nothing_else_but_what_the_host_did(self, native):
        known = {stall["id"] for story in STORIES for stall in native.stalls_of(story.kind)}
        others = [stall for stall in native.stalls if stall["id"] not in known]
        assert unexplained(others) == []

    def test_says_that_the_program_ended_by_itself(self, native):
        (session,) = native.report["sessions"]
        assert session["end"] == "exit"
        assert session["engine"] == "native"


class TestThePortableEngine:
    @stories(without=ONE_TURN | UNSEEN_BY_PORTABLE)
    def test_sees_it_once_at_its_line(self, portable, story):
        stall = portable.stall_of(story.kind)
        assert_length(portable, story.kind)
        # A call that holds the GIL is sampled when it ends, if the sampling thread gets to run by then; what
        # does not is sampled where there is a core for it.
        is_starved = "host" in admitted(stall, ())
        if stall["samples"] or not (is_starved or story.kind in HOLDS_THE_GIL):
            causes = story.causes + story.portable
            if is_starved:  # and what it did itself was too little to be seen
                causes += COMPUTING_UNSEEN
            assert stall["cause"] in admitted(stall, causes), stall["evidence"]
            assert_line(stall["culprit"], "culprit", story.kind)

    def test_takes_two_long_callbacks_in_one_turn_for_one_stall(self, portable):
        first, second = (portable.stall_of(kind) for kind in ("first_of_two", "second_of_two"))
        assert first == second

    def test_says_what_it_cannot_see(self):
        from loopcanary.portable.blind_spots import BLIND_SPOTS

        said = " ".join(BLIND_SPOTS)
        for words in ("Single callbacks are timed only in", "signal handler", "GIL is not named", "killed"):
            assert words in said
