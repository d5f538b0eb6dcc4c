"""Loops of GUIs, games and Twisted: each block is seen once, at its line, with its cause, length and name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.loops.blocked import SHARED, BlockedRun, assert_length, is_explained
from tests.loops.qt.needing import needs
from tests.loops.tk.x_server import x_server
from tests.program.test_detection import MARKS, STORIES
from tests.program.watching import Marks, Watched, admitted, is_by_the_host, wall_ns

pytestmark = pytest.mark.native

BLOCKS = Path(__file__).parent / "blocks"
INNER_MARKS = Marks((BLOCKS / "driving.py").read_text())
"""Of blocks in inner loops, which programs of several toolkits have."""
CAUSES = {story.kind: story.causes for story in STORIES}
OWN_CAUSES = {
    "wait_for_process": ("subprocess",),
    "lock_of_a_qthread": ("lock",),
    "query": ("native-cpu",),
    "scaling": ("native-cpu", "cpu"),
}
LOOPS_OF_TWO_LINES = {"gil_hog", "scaling"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop kind. Names of callbacks are patterns of fnmatch, or None where there is no name."""

    name: str
    """Of the callback that a timer, or the loop by itself, calls."""
    own: dict[str, str | None]
    """Blocks of the program's own, and the names of their callbacks."""
    more: tuple[str, ...] = ()
    """Shared blocks that only some loops borrow."""
    burst: str | None = None
    """Most of the callbacks in a burst."""
    variant: str = ""


LOOPS = {
    "glib": Loop(
        name="timeout: Drive.by_timer.<locals>.call",
        own={
            "idle": "idle: idle.<locals>.when_idle",
            "signal": "timeout: Thing.emit",
            "signal_of_a_watch": "poked: signal_of_a_watch.<locals>.on_poked",
            "io_watch": None,
            "in_an_inner_loop": "timeout: in_an_inner_loop.<locals>.inside",
            "after_an_inner_loop": "timeout: after_an_inner_loop.<locals>.opens",
            "context_of_its_own": None,
        },
    ),
    "pygame": Loop(
        name="frame",
        own={"key_handler": "*", "scaling": "*", "scene_of_a_frame": "*"},
        more=("python_signal_handler",),
    ),
    "qt": Loop(
        name="*: *",
        own={
            "click": "*QPushButton: MouseButtonRelease",
            "key": "*QLineEdit: KeyPress",
            "paint": "*QWidget: Paint",
            "queued_slot": "*QObject: MetaCall",
            "wait_for_process": "*",
            "lock_of_a_qthread": "*",
            "query": "*",
            "in_an_inner_loop": "*",
            "after_an_inner_loop": "*",
        },
        burst="*: MetaCall",
        variant="PySide6",
    ),
    "tk": Loop(
        name="after: Drive.by_timer.<locals>.call",
        own={
            "binding": ".field: binding.<locals>.on_press (<Button-1>)",
            "command": ".send: command.<locals>.on_click",
            "when_idle": "after_idle: when_idle.<locals>.refresh",
            "trace": "after: trace.<locals>.call",
            "after_that_sleeps": "after: after_that_sleeps.<locals>.call",
            "file_handler": None,
            "in_an_inner_loop": "after: in_an_inner_loop.<locals>.inside",
            "after_an_inner_loop": "after: after_an_inner_loop.<locals>.opens",
            "after_update": "after: after_update.<locals>.steps",
        },
        burst="after: burst.<locals>.short",
    ),
    "twisted": Loop(
        name="Drive.by_timer.<locals>.call",
        own={
            "data_received": "data_received.<locals>.Slow.dataReceived",
            "call_from_thread": "call_from_thread.<locals>.slow_call",
            "looping_call": "looping_call.<locals>.slow_tick",
        },
        more=("python_signal_handler",),
        burst="burst.<locals>.short",
        variant="epoll",
    ),
}


class LoopRun(BlockedRun):
    """One run of a loop's program."""

    def __init__(self, loop: str, truth_file: Path, report: dict[str, Any]) -> None:
        super().__init__(truth_file, report)
        self.loop = loop
        self.marks = Marks((BLOCKS / f"{loop}_blocks.py").read_text())

    def block(self, kind: str) -> dict[str, Any]:
        """The stall of a block: as long as the program says, with its line and cause."""
        stall = assert_length(self, kind)
        causes = OWN_CAUSES.get(kind, ("sleep",)) if kind in LOOPS[self.loop].own else CAUSES[kind]
        assert stall["cause"] in admitted(stall, causes), stall["evidence"]
        mark = f"culprit of {kind}"
        marked = [marks for marks in (self.marks, INNER_MARKS) if f"# {mark}\n" in marks.source]
        function, line = (*marked, MARKS)[0].find(mark)
        assert stall["culprit"]["function"] == function
        assert stall["culprit"]["line"] in ((line, line + 1) if kind in LOOPS_OF_TWO_LINES else (line,))
        return stall

    def session(self) -> dict[str, Any]:
        (session,) = self.report["sessions"]
        return session

    def figures(self) -> dict[str, Any]:
        return next(loop for loop in self.session()["loops"] if loop["thread"] == "MainThread")


def assert_named(stall: dict[str, Any], pattern: str | None) -> None:
    name = stall["callback"]["name"]
    assert name is None if pattern is None else fnmatchcase(name, pattern), name


Play = Callable[[str, str, tuple[str, ...]], LoopRun]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Play:
    """play(loop, variant, kinds): the loop's program, to its end; the same once for all tests."""

    @cache
    def play(loop: str, variant: str, kinds: tuple[str, ...]) -> LoopRun:
        folder = tmp_path_factory.mktemp(loop)
        watched, truth_file = Watched(store=folder / "store", engine="native"), folder / "truth.json"
        program = BLOCKS / f"{loop}_blocks.py"
        with prepared(loop, variant):
            if loop == "glib":  # by a Python that has PyGObject; the program installs loopcanary itself
                interpreter = request.getfixturevalue("interpreter")
                interpreter.run(program, truth_file, folder, watched.store, *kinds)
            else:
                watched.run(program, truth_file, folder, variant, *kinds, cwd=folder)
        return LoopRun(loop, truth_file, watched.report())

    return play


@contextmanager
def prepared(loop: str, variant: str) -> Iterator[None]:
    """Where the loop's windows are. Skips if its library is not there."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        match loop:
            case "pygame" | "twisted":
                pytest.importorskip(loop, exc_type=ImportError)
            case "qt":
                needs(variant)
                patch.setenv("QT_QPA_PLATFORM", "offscreen")
            case "tk":
                pytest.importorskip("_tkinter", reason="this Python has no tkinter")
                patch.setenv("DISPLAY", stack.enter_context(x_server()))
        yield


@pytest.fixture
def run(request: pytest.FixtureRequest, play: Play) -> LoopRun:
    """One run of all blocks of the loop that a test names."""
    loop = LOOPS[request.param]
    bursts = () if loop.burst is None else ("burst",)
    return play(request.param, loop.variant, (*SHARED, *loop.more, *loop.own, *bursts))


def of_loops(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("run", names, indirect=True)


def of_blocks(kinds: Callable[[Loop], Iterable[str]]) -> pytest.MarkDecorator:
    pairs = [(name, kind) for name, loop in LOOPS.items() for kind in kinds(loop)]
    return pytest.mark.parametrize(("run", "kind"), pairs, indirect=["run"])


@of_blocks(lambda loop: (*SHARED, *loop.more))
def test_a_timer_that_blocks(run, kind):
    stall = run.block(kind)
    assert stall["loop"] == run.loop
    assert_named(stall, LOOPS[run.loop].name)


@of_blocks(lambda loop: loop.own)
def test_a_callback_of_another_way_that_blocks(run, kind):
    stall = run.block(kind)
    assert stall["loop"] == run.loop
    if run.loop == "pygame":  # scenes of windows are their titles
        assert stall["scene"] == ("dungeon" if kind == "scene_of_a_frame" else None)
    if kind != "call_from_thread" or hasattr(import_module("twisted.internet.base"), "_threadCallHandler"):
        assert_named(stall, LOOPS[run.loop].own[kind])


@of_loops(*(name for name, loop in LOOPS.items() if loop.burst))
def test_many_short_callbacks_are_a_burst(run):
    if run.truth["burst"]["longest_callback_ns"] >= 100_000_000:
        pytest.skip("the machine stopped a callback of half a millisecond")
    stall = run.stall_of("burst")
    assert stall["cause"] in admitted(stall, ("burst",))
    if is_by_the_host(stall):
        pytest.skip("others had the cores, and the evidence is of that")
    names = [contributor["name"] for contributor in stall["contributors"]]
    assert fnmatchcase(names[0], LOOPS[run.loop].burst), names
    assert any("callbacks in one turn" in sentence for sentence in stall["evidence"]), stall["evidence"]


@of_loops(*LOOPS)
def test_nothing_else_is_reported_but_what_the_host_did(run):
    assert [stall for stall in run.others() if not is_explained(stall)] == []


# ---- other bindings and reactors ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loop", "variant", "kinds", "kind_of_loop"),
    [
        ("qt", "PyQt6", ("click", "paint", "after_an_inner_loop"), "qt"),
        ("twisted", "poll", ("held_lock", "data_received"), "twisted"),
        ("twisted", "select", ("held_lock", "data_received"), "twisted"),
        ("twisted", "asyncio", ("held_lock", "data_received"), "asyncio"),
    ],
)
def test_another_variant(play, loop, variant, kinds, kind_of_loop):
    run = play(loop, variant, ("sleep", "json_body", *kinds))
    for kind in run.truth:
        stall = run.block(kind)
        assert stall["loop"] == kind_of_loop
        if kind_of_loop == loop:
            assert_named(stall, LOOPS[loop].own.get(kind, LOOPS[loop].name))
    assert run.figures()["kind"] == kind_of_loop


# ---- figures of one loop ------------------------------------------------------------------------------


@of_loops("twisted")
def test_turns_and_callbacks_of_a_reactor_are_counted(run):
    figures = run.figures()
    assert figures["kind"] == "twisted"
    assert figures["turns"] > len(run.truth)
    assert figures["callbacks"] > 600  # the burst alone


@of_loops("pygame")
def test_each_blocked_frame_dropped_as_many_as_its_time_says(run):
    frames = run.session()["frames"]
    assert {"dungeon", None} <= {scene["scene"] for scene in frames}
    # Most of the blocks are a quarter of a second long. Those sized by a first try may come out shorter; ten
    # refreshes of 60 Hz without a frame are `middle` at least.
    long = [kind for kind, facts in run.truth.items() if facts["end_ns"] - facts["begin_ns"] > 10.5e9 / 60]
    worse = sum(scene["drop_level"][level] for scene in frames for level in ("middle", "high", "frozen"))
    assert worse >= len(long) >= 8
    assert sum(sum(scene["drop_level"].values()) for scene in frames) == sum(
        scene["frames"] for scene in frames
    )


@of_loops("pygame")
def test_jank_names_the_stalls_in_its_worst_frames(run):
    jank = [issue for issue in run.report["issues"] if issue["kind"] == "jank"]
    stalls = {stall["id"]: stall for stall in run.stalls}
    # A crowded machine drops frames without any stall.
    stalled = [issue for issue in jank if issue["worst"][0]["stall_ids"]]
    assert stalled
    for issue in stalled:
        worst = issue["worst"][0]
        if not is_by_the_host(stalls[worst["stall_ids"][0]]):
            assert issue["culprit"] is not None
            assert issue["stacks"]
        for stall_id in worst["stall_ids"]:
            stall = stalls[stall_id]
            assert wall_ns(stall["began_at"]) < wall_ns(worst["began_at"]) + worst["duration_ms"] * 1e6


@of_loops("pygame")
def test_a_key_that_is_answered_late_is_an_input_issue(run):
    facts = run.truth["key_handler"]
    late = [
        issue
        for issue in run.report["issues"]
        if issue["kind"] == "input" and facts["wall_before_ns"] - 1e9 < wall_ns(issue["began_at"])
    ]
    assert [issue["event"] for issue in late] == ["KeyDown"]
    assert late[0]["duration_ms"] > (facts["end_ns"] - facts["begin_ns"]) / 1e6
    if not is_by_the_host(run.stall_of("key_handler")):
        assert late[0]["culprit"]["function"] == "key_handler"
    (figures,) = run.session()["input"]
    assert (figures["events"], figures["worst"]) == (1, "KeyDown")
