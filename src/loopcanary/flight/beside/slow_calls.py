"""Calls that took too long outside of stalls, as their threads noted them. Trusts no byte of these files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from loopcanary.flight.beside import calls_format as layout
from loopcanary.flight.beside.calls import (
    AT_NO_WORK,
    LOST,
    NONE,
    ROWS_MAX,
    SHARES,
    CallsFile,
    CallTree,
)
from loopcanary.flight.beside.calls_named import CallsInWindow, methods_of, named
from loopcanary.flight.header import TickClock
from loopcanary.flight.source import FlightError, open_source
from loopcanary.late_dataclass import dataclass
from loopcanary.model.calls import TracedCalls
from loopcanary.model.method_map import CALLS, CALLS_FILES, METHODS, NUMBER_MAX

_MODULE: Final = "<module>"
_TIME_MASK: Final = (1 << layout.TIME_BITS) - 1
_IN: Final = 1 << 63
_US_MAX: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowCall:
    """One call, with all that was called in it."""

    tid: int
    began_us: int
    """The file's time: with the thread's number it is the call's own."""
    began_ns: int
    """When the call began, monotonic."""
    duration_ns: int
    calls: TracedCalls


class _Noted(NamedTuple):
    """In the file's time."""

    number: int
    begin_us: int
    end_us: int
    end: int
    """Number of the word behind the call's end."""

    @property
    def can_be(self) -> bool:
        return self.number <= NUMBER_MAX and self.begin_us <= self.end_us < _US_MAX


class SlowCalls:
    """Those of one program, each read once. `flight`: path of its flight file."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int], int] = {}
        """By thread how many of its slow calls."""

    def has_new(self, flight: str, clock: TickClock) -> bool:
        """Whether there are slow calls that were not read yet."""
        if not os.path.exists(flight + METHODS):  # noqa: PTH110 - most programs trace no calls
            return False
        return any(file.slow_count > self._read.get(file.owner, 0) for file in _files(flight, clock))

    def read(
        self, flight: str, clock: TickClock, call_tree: CallTree, owns: Callable[[str], bool]
    ) -> list[SlowCall]:
        """Slow calls that have ended and were not read yet. Arguments as `read_calls`."""
        found = []
        read: dict[tuple[int, int], int] = {}
        for file in _files(flight, clock):
            read[file.owner] = count = file.slow_count
            noted = file.noted(self._read.get(file.owner, 0), count)
            found += [_as_call(file, one, flight, call_tree, owns) for one in noted]
        self._read = read
        return found

    def left_open(
        self,
        flight: str,
        clock: TickClock,
        call_tree: CallTree,
        owns: Callable[[str], bool],
        *,
        last_ns: int,
        least_ns: int,
        judged_ns: Mapping[int, int],
    ) -> list[SlowCall]:
        """Those in which the process died. `last_ns`: it was seen to live then; `least_ns`: others took less;
        `judged_ns`: by thread, stalls say the same of calls that began before that."""
        methods = methods_of(flight)
        modules = {number for number, method in methods.items() if method.qualname == _MODULE}
        found = []
        for file in _files(flight, clock):
            noted = file.left_open(last_ns, least_ns, modules)
            if noted is not None and file.at_ns(noted.begin_us) > judged_ns.get(file.owner[0], -1):
                found.append(_as_call(file, noted, flight, call_tree, owns))
        return found


def _files(flight: str, clock: TickClock) -> Iterator[_SlowCallsFile]:
    for number in range(CALLS_FILES):
        with suppress(FlightError):
            source = open_source(f"{flight}{CALLS}{number}")
            try:
                yield _SlowCallsFile(source, clock)
            finally:
                source.close()


def _as_call(
    file: _SlowCallsFile, noted: _Noted, flight: str, call_tree: CallTree, owns: Callable[[str], bool]
) -> SlowCall:
    tree = file.tree_in(noted, call_tree)
    return SlowCall(
        tid=file.owner[0],
        began_us=noted.begin_us,
        began_ns=file.at_ns(noted.begin_us),
        duration_ns=file.ns_of(noted.end_us - noted.begin_us),
        calls=named(tree, methods_of(flight), owns),
    )


class _SlowCallsFile(CallsFile):
    """As its slow calls are read."""

    @property
    def slow_count(self) -> int:
        """How many slow calls were noted in all."""
        return int(self._header()["slow"])

    def noted(self, after: int, count: int) -> list[_Noted]:
        """The slow calls from number `after` up to `count`, oldest first, without those that were
        overwritten."""
        content = self._source.read(layout.SLOW_OFFSET, layout.SLOW_MAX * layout.SLOW.size)
        header = self._header()
        cells = [*layout.SLOW.every(content)]
        first = max(after, count - layout.SLOW_MAX, header["slow"] - layout.SLOW_MAX + 1)
        every = (cells[number % layout.SLOW_MAX] for number in range(first, count))
        found = [_Noted(one["id"], one["begin_us"], one["end_us"], one["end"]) for one in every]
        return [one for one in found if one.can_be and one.end <= header["written"]]

    def left_open(self, last_ns: int, least_ns: int, modules: set[int]) -> _Noted | None:
        """The innermost call that was open for this time; None: there is none, or one inside it was noted.
        The main module is the program itself."""
        seen, header = self._look(), self._header()
        if header["closed_ns"]:
            return None
        last_us = self._us(last_ns)
        if seen.written:
            last_us = max(last_us, self._time_of(seen.written - 1, last_us))
        count = header["slow"]
        noted = [one.begin_us for one in self.noted(max(0, count - 1), count)]
        for depth, call in reversed([*enumerate(layout.OPEN.every(seen.opened))]):
            begin_us = int(call["us"])
            if begin_us <= last_us and self.ns_of(last_us - begin_us) >= least_ns:
                is_program = depth == 0 and call["id"] in modules
                is_told = any(begin_us <= inner_us for inner_us in noted)
                one = _Noted(int(call["id"]), begin_us, last_us, seen.written)
                return None if is_program or is_told or not one.can_be else one
        return None

    def tree_in(self, of: _Noted, call_tree: CallTree) -> CallsInWindow:
        """The call and all in it, as far as its thread has not overwritten that."""
        for share in SHARES:
            oldest = self._oldest(self._header()["written"])
            first = oldest + (self._words // share if share and oldest else 0)
            if first >= of.end:
                break
            words = self._read(first, of.end - first)
            if self._oldest(self._header()["written"]) <= first:
                return self._tree_of(of, words, first, call_tree)
        return self._alone(of)

    def _tree_of(self, of: _Noted, words: bytes, first: int, call_tree: CallTree) -> CallsInWindow:
        begin = _last_begin(words, of)
        start = first if begin is None else first + begin
        answer = call_tree(
            lambda number, count: words[8 * (number - first) : 8 * (number - first + count)],
            start,
            of.end,
            LOST if begin is None else NONE,
            b"",
            0,
            (of.begin_us, of.end_us),
            ROWS_MAX,
            AT_NO_WORK,
        )
        tree = self._as_tree(answer, self._lost(first, answer[1], of.begin_us) if begin is None else 0)
        return tree if begin is not None else self._with_whole(of, tree)

    def _with_whole(self, of: _Noted, tree: CallsInWindow) -> CallsInWindow:
        """The tree with the call's own length, which is known also where its begin was overwritten."""
        if not tree.rows or tree.rows[0][1] != of.number:
            return self._alone(of)
        ns = self.ns_of(of.end_us - of.begin_us)
        first = tree.rows[0]
        return replace(tree, rows=[(*first[:3], ns, *first[4:]), *tree.rows[1:]])

    def _alone(self, of: _Noted) -> CallsInWindow:
        lost = self._lost(of.end, of.end_us, of.begin_us)
        ns = self.ns_of(of.end_us - of.begin_us)
        return CallsInWindow(rows=[(-1, of.number, 1, ns, ns, False)], lost=lost, left_out=0, left_out_ns=0)


def _last_begin(words: bytes, of: _Noted) -> int | None:
    """Where the call begins; None: that was overwritten."""
    word = (_IN | of.number << layout.TIME_BITS | (of.begin_us & _TIME_MASK)).to_bytes(8, "little")
    at = words.rfind(word)
    while at % 8 and at > 0:
        at = words.rfind(word, 0, at + 7)
    return at // 8 if at >= 0 else None
