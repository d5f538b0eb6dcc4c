"""Calls of a running process, read again and again: more than a thread has room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from typing import Final

from loopcanary.flight.beside.calls import (
    ROWS_MAX,
    CallsCopy,
    CallsFile,
    CallTree,
    ReadSoFar,
    Window,
)
from loopcanary.flight.beside.calls_named import CallsInWindow, frame_of, methods_in, named_work
from loopcanary.flight.header import TickClock
from loopcanary.flight.source import FileSource, FlightError, open_source
from loopcanary.late_dataclass import dataclass
from loopcanary.model.calls import TimedCall, TracedCall, TracedCalls, heaviest
from loopcanary.model.method_map import CALLS, CALLS_FILES, METHODS, Method

_ROWS_A_LOOK: Final = 5_000
_PATHS_MAX: Final = 50_000


@dataclass(slots=True)
class _Row:
    """All calls by one path."""

    number: int
    calls: int = 0
    total_ns: int = 0
    self_ns: int = 0
    inside: dict[int, int] = field(default_factory=dict)
    """Function to the row of its calls in this one."""


class MergedCalls:
    """The trees of one thread's windows, each of which begins where the one before ended, as one."""

    def __init__(self) -> None:
        self._rows = [_Row(0)]  # the first is around all others
        self._opened: set[int] = set()
        """Rows of which a call goes on into the next window."""
        self._lost = self._left_out = self._left_out_ns = 0
        self._work: dict[int, tuple[int, int]] = {}
        """Number to times and total."""

    def add(self, tree: CallsInWindow) -> None:
        """Adds the tree of the next window."""
        # Of a row that is not there the call may go on all the same.
        opened = set(self._opened) if tree.left_out or not tree.rows else set()
        places: list[int | None] = []
        for around, number, calls, total_ns, self_ns, is_open in tree.rows:
            outer = 0 if around < 0 else places[around]
            place = None if outer is None else self._place(outer, number)
            places.append(place)
            if place is None:
                self._left_out += 1
                self._left_out_ns += self_ns
                continue
            row = self._rows[place]
            row.calls += calls - (place in self._opened)  # one that went on was counted
            row.total_ns += total_ns
            row.self_ns += self_ns
            opened.discard(place)
            if is_open:
                opened.add(place)
        self._opened = opened
        self._lost += tree.lost
        self._left_out += tree.left_out
        self._left_out_ns += tree.left_out_ns
        for number, times, total_ns in tree.work:
            before = self._work.get(number, (0, 0))
            self._work[number] = before[0] + times, before[1] + total_ns

    def _place(self, outer: int, number: int) -> int | None:
        inside = self._rows[outer].inside
        if number not in inside:
            if len(self._rows) >= _PATHS_MAX:
                return None
            inside[number] = len(self._rows)
            self._rows.append(_Row(number))
        return inside[number]

    def named(self, methods: dict[int, Method], owns: Callable[[str], bool]) -> TracedCalls:
        """The longest rows, with their names."""
        ordered = list(self._in_order())
        kept = heaviest(
            ordered, ROWS_MAX, depth=lambda one: one[1], weight=lambda one: self._rows[one[0]].total_ns
        )
        rows = []
        for place, depth in (ordered[index] for index in kept):
            row = self._rows[place]
            rows.append(
                TracedCall(
                    frame=frame_of(methods.get(row.number), row.number, owns),
                    depth=depth,
                    calls=row.calls,
                    total_ns=row.total_ns,
                    self_ns=row.self_ns,
                    open=place in self._opened,
                )
            )
        return TracedCalls(
            rows=tuple(rows),
            lost=self._lost,
            left_out=self._left_out + len(ordered) - len(kept),
            left_out_ns=self._left_out_ns
            + sum(self._rows[place].self_ns for place, _ in ordered)
            - sum(row.self_ns for row in rows),
            work=named_work(((number, *known) for number, known in self._work.items()), methods),
        )

    def _in_order(self) -> Iterator[tuple[int, int]]:
        """Each row and its depth, before those inside it."""
        waiting = [(place, 0) for place in reversed(self._rows[0].inside.values())]
        while waiting:
            place, depth = waiting.pop()
            yield place, depth
            waiting.extend((inner, depth + 1) for inner in reversed(self._rows[place].inside.values()))


@dataclass(slots=True)
class _Followed:
    """The file of calls of one thread, and how far it was read."""

    file: CallsFile
    owner: tuple[int, int]
    progress: ReadSoFar
    calls: MergedCalls = field(default_factory=MergedCalls)


class CallsFollowed:
    """The calls of all traced threads of a process, from now on. A context manager. Damaged files do not make
    it fail."""

    def __init__(
        self, flight: str, clock: Callable[[], TickClock], call_tree: CallTree, begin_ns: int
    ) -> None:
        """`flight`: path of the flight file; `clock`: gives the file's clock, as it is refined; `begin_ns`:
        monotonic."""
        self._flight = flight
        self._clock = clock
        self._methods: dict[int, Method] = {}
        self._names: FileSource | None = None
        """The names of the functions. The file is held open, like the files of calls: a keeper removes
        both."""
        self._call_tree = call_tree
        self._followed: dict[int, _Followed] = {}
        self._over: list[_Followed] = []
        """Files of threads that have given their file to another thread."""
        self._find(begin_ns)

    def look(self, now_ns: int) -> None:
        """Adds the calls since the last look. To be called often, so that threads overwrite little
        meanwhile."""
        self._find(None)
        for one in self._followed.values():
            with suppress(FlightError):
                one.file.clock = self._clock()
                tree, one.progress = one.file.tree_since(one.progress, now_ns, self._call_tree, _ROWS_A_LOOK)
                one.calls.add(tree)
        with suppress(FlightError):
            self._names = self._names or FileSource(self._flight + METHODS)
            self._names.measure()
            self._methods = methods_in(self._names)

    @property
    def has_files(self) -> bool:
        """Whether a thread has one: it comes with its first call."""
        return bool(self._followed)

    def copies(self, window: Window) -> dict[int, CallsCopy]:
        """What is there of each thread at this moment, by its number: read at once, and decoded later."""
        found = {}
        for one in self._followed.values():
            with suppress(FlightError):
                found[one.owner[0]] = one.file.copy(window)
        return found

    def threads(
        self, copies: dict[int, CallsCopy], owns: Callable[[str], bool]
    ) -> Iterator[tuple[int, TracedCalls, tuple[TimedCall, ...]]]:
        """The kernel's number of each thread that called something, its calls, and those of its copy one by
        one. The process may have ended."""
        for one in (*self._over, *self._followed.values()):
            tid, calls = one.owner[0], one.calls.named(self._methods, owns)
            copy = copies.get(tid)
            if calls.rows or calls.lost:
                yield tid, calls, () if copy is None else tuple(copy.each(self._methods, owns))

    def close(self) -> None:
        for one in (*self._over, *self._followed.values()):
            one.file.close()
        if self._names is not None:
            self._names.close()

    def _find(self, begin_ns: int | None) -> None:
        """Takes up threads that have begun to be traced. `begin_ns`: what was called before is not wanted."""
        for number in range(CALLS_FILES):
            with suppress(FlightError):
                before = self._followed.get(number)
                if before is not None and before.file.owner == before.owner:
                    continue
                source = open_source(f"{self._flight}{CALLS}{number}")
                try:
                    file = CallsFile(source, self._clock())
                    progress = ReadSoFar(0, 0) if begin_ns is None else file.progress(begin_ns)
                    followed = _Followed(file, file.owner, progress)
                except FlightError:
                    source.close()
                    raise
                if before is not None:
                    self._over.append(self._followed.pop(number))
                self._followed[number] = followed
