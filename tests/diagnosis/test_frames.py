"""Stacks as a table of frames places them, against looking at each frame of each stack."""

from __future__ import annotations

import dataclasses
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from loopcanary.diagnosis.code.frame_table import FrameTable
from loopcanary.diagnosis.code.ownership import CodePaths, Owner, Ownership
from loopcanary.diagnosis.code.stack_frames import NO_STACK
from loopcanary.model import Frame, Stack

PATHS = CodePaths(
    stdlib=("/usr/lib/python3.12",), ours=("/srv/env/loopcanary",), roots=("/srv/app",), working="/srv/app"
)
FILES = (
    "/srv/app/a.py",
    "/srv/app/b.py",
    "/usr/lib/python3.12/json/decoder.py",
    "/usr/lib/python3.12/asyncio/events.py",
    "/usr/lib/python3.12/importlib/__init__.py",
    "/srv/env/loopcanary/probe.py",
)
NAMES = ("run", "_run", "handle", "Task.step", "handle.<locals>.<listcomp>")


def _pool(size: int) -> tuple[Frame, ...]:
    """So many different frames, of few functions and of fewer lines than frames."""
    return tuple(
        Frame(
            qualname=NAMES[number % len(NAMES)],
            file=FILES[number // 3 % len(FILES)],
            line=number // 2,
            column=number,
            end_column=number + 1,
        )
        for number in range(size)
    )


POOLS = {size: _pool(size) for size in (3, 40, 256, 257, 300)}


@st.composite
def _some_stacks(draw: st.DrawFn) -> list[Stack]:
    """Stacks that share outer frames, as those of one thread do; of some, copies that are equal."""
    pool = POOLS[draw(st.sampled_from(sorted(POOLS)))]
    # A whole pool in one stack first or last: the table fills up before or after others are placed.
    stacks = [Stack(frames=pool)] if draw(st.booleans()) else []
    outer: tuple[Frame, ...] = ()
    for _ in range(draw(st.integers(1, 12))):
        inner = draw(st.lists(st.sampled_from(pool), max_size=12))
        kept = draw(st.integers(0, len(outer)))
        outer = (*inner, *outer[len(outer) - kept :])
        stacks.append(Stack(frames=outer))
    copies = [
        Stack(frames=tuple(dataclasses.replace(frame) for frame in stack.frames)) for stack in stacks[:3]
    ]
    return [*stacks, Stack(frames=pool), *copies]


def _place_of(frame: Frame) -> tuple[object, ...]:
    return frame.qualname, frame.file, frame.line, frame.column, frame.end_column


def _expected(stack: Stack) -> list[tuple[object, ...]]:
    return [_place_of(frame) for frame in stack.frames if not frame.file.startswith("/srv/env/loopcanary")]


def _lines_told(stack: Stack) -> list[tuple[object, object]]:
    """File and line of each frame, but for the function around a comprehension."""
    places = _expected(stack)
    told = [
        place
        for inner, place in itertools.pairwise([("", "", 0), *places])
        if not (
            str(inner[0]).endswith("<listcomp>") and place[0] in {inner[0], "handle"} and inner[1] == place[1]
        )
    ]
    return [(place[1], place[2]) for place in told]


@settings(max_examples=60)
@given(_some_stacks())
def test_every_stack_has_its_frames(stacks: list[Stack]) -> None:
    table = FrameTable(Ownership(PATHS))

    placed = [table.place(stack) for stack in stacks]

    for stack, found in zip(stacks, placed, strict=True):
        assert [_place_of(view.frame) for view in found.frames] == _expected(stack)
        assert [(line.file, line.line) for line in found.shown.frames] == _lines_told(stack)
        assert bool(found) == bool(_expected(stack))
        if found:
            assert found.at(0) is found.frames[0]


@settings(max_examples=60)
@given(_some_stacks())
def test_what_is_equal_is_one_object(stacks: list[Stack]) -> None:
    table = FrameTable(Ownership(PATHS))

    placed = [table.place(stack) for stack in stacks]

    frames = [found.frames for found in placed]
    lines = [tuple(map(id, found.shown.frames)) for found in placed]
    functions = [tuple(view.function for view in some) for some in frames]
    for one, other in itertools.combinations(range(len(placed)), 2):
        assert (placed[one] is placed[other]) == (frames[one] == frames[other])
        assert (placed[one].shown is placed[other].shown) == (lines[one] == lines[other])
        assert (placed[one].path is placed[other].path) == (functions[one] == functions[other])


@settings(max_examples=60)
@given(_some_stacks())
def test_a_path_ends_where_the_loop_called_the_work(stacks: list[Stack]) -> None:
    table = FrameTable(Ownership(PATHS))

    for placed in map(table.place, stacks):
        functions = [view.function for view in placed.frames]
        calls = [index for index, function in enumerate(functions) if function.calls_work]
        work = functions[: calls[0]] if calls else functions
        assert placed.path.length == len(work)
        assert placed.work == placed.frames[: len(work)]
        assert list(placed.path.places) == list(dict.fromkeys(work))
        assert all(work.index(function) == index for function, index in placed.path.places.items())
        assert set(placed.path.whole) == set(functions)
        assert set(placed.path.roles) == {function.role for function in work} - {None}


def test_a_comprehension_is_not_shown_as_a_recursion() -> None:
    app = FILES[0]
    frames = (
        Frame(qualname="work.<locals>.<listcomp>.<dictcomp>", file=app, line=8),
        Frame(qualname="work.<locals>.<listcomp>", file=app, line=7),
        Frame(qualname="work", file=app, line=6),
        Frame(qualname="work", file=app, line=9),
        Frame(qualname="main", file=app, line=20),
    )
    shown = FrameTable(Ownership(PATHS)).place(Stack(frames=frames)).shown.frames

    assert [(frame.function, frame.line) for frame in shown] == [("work", 8), ("work", 9), ("main", 20)]


def test_a_stack_of_nothing_but_our_own_frames_is_none() -> None:
    table = FrameTable(Ownership(PATHS))
    ours = Frame(qualname="probe", file=FILES[-1], line=1)

    assert table.place(Stack(frames=(ours,))) is NO_STACK
    assert Ownership(PATHS).of(ours.file) is Owner.OURS
