"""Reads the Python frames of other threads, by sys._current_frames and under the GIL."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from loopcanary.model.stack import Frame, Stack

FRAMES_MAX = 256
_CACHE_MAX = 8_192
_CPYTHON = sys.implementation.name == "cpython"


class Place(NamedTuple):
    """The position of a frame. Taken in one go, before the thread can move on."""

    code: CodeType
    instruction: int
    line: int


class Reading(NamedTuple):
    """The places of one thread, innermost first, the handle whose callback it was in, and what its loop's
    runner had called."""

    places: list[Place]
    truncated: bool
    handle: Any = None
    called: CodeType | None = None


def read(
    frame: FrameType | None,
    handle_run: CodeType | None = None,
    runners: Sequence[tuple[int, int]] = (),
) -> Reading:
    """The places of a thread, without a reference to its frames, which would keep its variables alive.

    `handle_run`: code of asyncio's `Handle._run`; its innermost frame names the running callback.
    `runners`: of the frames that run the loop or one inside it, where a probe knows them, (id,
    instruction; -1: any).
    """
    places: list[Place] = []
    handle = called = None
    while frame is not None and len(places) < FRAMES_MAX:
        code = frame.f_code
        if runners and called is None and places and _is_one_of(runners, frame):
            called = places[-1].code
        places.append(Place(code, frame.f_lasti, frame.f_lineno or 0))
        if code is handle_run and handle is None:
            handle = frame.f_locals.get("self")
        frame = frame.f_back
    return Reading(places, frame is not None, handle, called)


def _is_one_of(runners: Sequence[tuple[int, int]], frame: FrameType) -> bool:
    return (id(frame), frame.f_lasti) in runners or (id(frame), -1) in runners


class FrameCache:
    """Frames of places, made once: their columns are found by walking a table of the code object."""

    def __init__(self) -> None:
        # The code object is kept with its frame, so that no other can get its id.
        self._frames: dict[tuple[int, int], tuple[CodeType, Frame]] = {}

    def stack(self, reading: Reading) -> Stack:
        return Stack(frames=tuple(map(self._frame, reading.places)), truncated=reading.truncated)

    def _frame(self, place: Place) -> Frame:
        # Other interpreters may give no instruction; the line is as good.
        key = (id(place.code), place.instruction if place.instruction >= 0 else -1 - place.line)
        known = self._frames.get(key)
        if known is not None:
            return known[1]
        if len(self._frames) >= _CACHE_MAX:
            self._frames.clear()
        frame = _make(place)
        self._frames[key] = (place.code, frame)
        return frame


def _make(place: Place) -> Frame:
    code = place.code
    line, end_line, column, end_column = _positions(place)
    return Frame(
        qualname=getattr(code, "co_qualname", code.co_name),
        file=code.co_filename,
        line=line or place.line,
        end_line=end_line or 0,
        column=0 if column is None else column + 1,
        end_column=0 if end_column is None else end_column + 1,
        first_line=code.co_firstlineno,
        code_flags=code.co_flags,
    )


def _positions(place: Place) -> tuple[int | None, int | None, int | None, int | None]:
    """PEP 657; zero-based columns. Instructions of other interpreters are counted differently."""
    if not _CPYTHON or place.instruction < 0:
        return (place.line, None, None, None)
    positions = itertools.islice(place.code.co_positions(), place.instruction // 2, None)
    return next(positions, (place.line, None, None, None))
