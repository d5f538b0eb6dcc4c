"""The tree that C makes of a thread's words, against a simple model that has seen every call."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary.flight.beside.calls import AT_NO_WORK

native = pytest.importorskip("loopcanary._native")
pytestmark = pytest.mark.native

ALL = 1 << 16
IN = 1 << 63
Row = tuple[int, int, int, bool]
"""Calls, total, self, open."""


WORK = 1 << 19


@dataclass
class Piece:
    """A piece of work, and begin and end of the calls that it began."""

    number: int
    begin: int
    around: int
    calls: list[list[int]] = field(default_factory=list)


@dataclass
class Thread:
    """A thread that calls: its words, as native/core/methods/calls.h writes them, and the truth."""

    words: list[int] = field(default_factory=list)
    stack: list[tuple[int, int]] = field(default_factory=list)
    """Number and begin of each open call, outermost first."""
    ended: list[tuple[tuple[int, ...], int, int]] = field(default_factory=list)
    """Path, begin and end of each call that has ended."""
    now: int = 0
    pieces: list[Piece] = field(default_factory=list)
    """Of work, in their order."""

    def begin_work(self, number: int) -> None:
        """The calls from here on belong to it; 0: to none."""
        self.words.append(IN | WORK + number << 43 | self.now)
        self._end_of_call()
        self.pieces.append(Piece(number, self.now, len(self.stack)))

    def enter(self, number: int) -> None:
        if self.pieces and len(self.stack) == self.pieces[-1].around:
            self.pieces[-1].calls.append([self.now, 1 << 60])
        self.stack.append((number, self.now))
        self.words.append(IN | number << 43 | self.now)

    def leave(self, number: int) -> None:
        """The innermost call of that number ends, and those inside it: as if none had said so."""
        depths = [depth for depth, one in enumerate(self.stack) if one[0] == number]
        if depths:
            while len(self.stack) > depths[-1]:
                path = tuple(one for one, _ in self.stack)
                self.ended.append((path, self.stack.pop()[1], self.now))
                for piece in self.pieces[-1:]:
                    if len(self.stack) == piece.around:
                        self._end_of_call()
                    piece.around = min(piece.around, len(self.stack))
            self.words.append(number << 43 | self.now)

    def _end_of_call(self) -> None:
        for call in self.pieces[-1].calls[-1:] if self.pieces else ():
            call[1] = min(call[1], self.now)

    def expected_work(self, begin: int, end: int) -> dict[int, tuple[int, int]]:
        """Number to times and total."""
        found: dict[int, tuple[int, int]] = {}
        until = [piece.begin for piece in self.pieces[1:]] + [1 << 60]
        for piece, last in zip(self.pieces, until, strict=False):
            went_on = piece.begin < begin <= last and any(since < begin <= to for since, to in piece.calls)
            total = sum(max(0, min(to, end) - max(since, begin)) for since, to in piece.calls)
            times = begin <= piece.begin <= end or went_on
            before = found.get(piece.number, (0, 0))
            found[piece.number] = before[0] + times, before[1] + total
        return {number: one for number, one in found.items() if one != (0, 0)}

    def work(self, begin: int, end: int) -> dict[int, tuple[int, int]]:
        """What C makes of it."""
        return {number - WORK: (times, total) for number, times, total in self.asked(ALL, begin, end, ALL)[4]}

    def expected(self, begin: int, end: int) -> dict[tuple[int, ...], Row]:
        calls = [*self.ended]
        for depth, (_, since) in enumerate(self.stack):
            calls.append((tuple(one for one, _ in self.stack[: depth + 1]), since, 1 << 60))
        found: dict[tuple[int, ...], Row] = {}
        inner: dict[tuple[int, ...], int] = {}
        for path, since, until in calls:
            if since <= end and until >= begin:
                took = min(until, end) - max(since, begin)
                count, total, _, is_open = found.get(path, (0, 0, 0, False))
                found[path] = (count + 1, total + took, 0, is_open or until > end)
                inner[path[:-1]] = inner.get(path[:-1], 0) + took
        return {
            path: (count, total, total - inner.get(path, 0), is_open)
            for path, (count, total, _, is_open) in found.items()
        }

    def tree(self, kept: int, begin: int, end: int, most: int = ALL) -> dict[tuple[int, ...], Row]:
        """What C makes of the last `kept` words."""
        rows = self.asked(kept, begin, end, most)[0]
        paths: list[tuple[int, ...]] = []
        for parent, number, *_ in rows:
            paths.append((*(paths[parent] if parent >= 0 else ()), number))
        assert len(set(paths)) == len(paths)
        return {path: tuple(row[2:]) for path, row in zip(paths, rows, strict=True)}

    def asked(self, kept: int, begin: int, end: int, most: int, at_work: tuple[int, int] = AT_NO_WORK) -> Any:
        """What the extension answers."""
        first = max(0, len(self.words) - kept)
        opened = b"".join(struct.pack("<QQ", *one) for one in self.stack)

        def read(number: int, count: int) -> bytes:
            return struct.pack(f"<{count}Q", *self.words[number : number + count])

        return native.call_tree(
            read, first, len(self.words), first == 0, opened, len(self.stack), (begin, end), most, at_work
        )


def steps_of(*ways: str) -> st.SearchStrategy[list[tuple[str, int, int]]]:
    return st.lists(st.tuples(st.sampled_from(ways), st.integers(1, 5), st.integers(0, 3)), max_size=120)


WORK_STEPS = steps_of("enter", "leave", "leave innermost", "work")
STEPS = steps_of("enter", "leave", "leave innermost")
EACH_ENDS = steps_of("enter", "leave innermost")
"""Each call has an end of its own, as events give it: else nothing says of an overwritten one that it was."""


def played(steps: list[tuple[str, int, int]]) -> Thread:
    thread = Thread()
    for what, number, pause in steps:
        thread.now += pause
        if what == "enter":
            thread.enter(number)
        elif what == "work":
            thread.begin_work(number - 1)
        elif what == "leave":
            thread.leave(number)
        elif thread.stack:
            thread.leave(thread.stack[-1][0])
    return thread


@given(steps=STEPS, begin=st.integers(0, 200), length=st.integers(0, 200))
def test_a_whole_record_gives_the_models_tree(steps, begin, length):
    thread = played(steps)
    assert thread.tree(ALL, begin, begin + length) == thread.expected(begin, begin + length)


@given(steps=WORK_STEPS, begin=st.integers(0, 200), length=st.integers(0, 200))
def test_each_call_counts_for_the_work_that_began_it(steps, begin, length):
    thread = played(steps)
    assert thread.tree(ALL, begin, begin + length) == thread.expected(begin, begin + length)
    assert thread.work(begin, begin + length) == thread.expected_work(begin, begin + length)


def test_overwritten_work_is_known_from_the_header():
    thread = Thread()
    thread.begin_work(3)
    thread.enter(1)
    for _ in range(20):
        thread.now += 1
        thread.enter(2)
        thread.now += 1
        thread.leave(2)
    assert thread.asked(10, 0, 50, ALL, at_work=(WORK + 3, 0))[4] == [(WORK + 3, 1, 50)]
    assert thread.asked(10, 0, 50, ALL)[4] == []
    thread.begin_work(4)  # inside of that call: which work was before it is not known
    thread.enter(2)
    assert thread.asked(5, 0, 50, ALL, at_work=(WORK + 4, 1))[4] == [(WORK + 4, 1, 10)]


@given(steps=EACH_ENDS, kept=st.integers(1, 60), length=st.integers(0, 200), ahead=st.integers(0, 5))
def test_what_was_overwritten_before_the_window_is_not_missed(steps, kept, length, ahead):
    """Calls that began in words that are gone are known from their ends, or from the open calls."""
    thread = played(steps)
    first = max(0, len(thread.words) - kept)
    oldest = thread.words[first] & ((1 << 43) - 1) if thread.words else 0
    begin = oldest + 1 + ahead
    assert thread.tree(kept, begin, begin + length) == thread.expected(begin, begin + length)


@given(steps=EACH_ENDS, kept=st.integers(1, 60), length=st.integers(0, 200))
def test_a_word_of_a_call_that_the_stack_lacks_is_believed(steps, kept, length):
    """The thread was killed between the two notes of a call's begin."""
    thread = played(steps)
    thread.now += 1
    thread.enter(9)
    first = max(0, len(thread.words) - kept)
    begin = (thread.words[first] & ((1 << 43) - 1)) + 1
    expected = thread.expected(begin, begin + length)
    thread.stack.pop()
    assert thread.tree(kept, begin, begin + length) == expected


@given(steps=STEPS, most=st.integers(1, 10))
def test_the_heaviest_rows_stay_with_those_around_them(steps, most):
    thread = played(steps)
    whole = thread.tree(ALL, 0, thread.now)
    kept = thread.tree(ALL, 0, thread.now, most)
    assert len(kept) == min(most, len(whole))
    assert all(whole[path] == row for path, row in kept.items())
    least = min((row[1] for row in kept.values()), default=0)
    assert all(row[1] <= least for path, row in whole.items() if path not in kept)


@given(
    words=st.lists(st.integers(0, (1 << 64) - 1), max_size=80),
    opened=st.binary(max_size=80),
    depth=st.integers(0, (1 << 64) - 1),
    begin=st.integers(0, (1 << 63) - 1),
    length=st.integers(0, (1 << 62) - 1),
    is_whole=st.booleans(),
)
def test_any_words_give_a_tree_that_adds_up(words, opened, depth, begin, length, is_whole):  # noqa: PLR0917
    def read(number: int, count: int) -> bytes:
        return struct.pack(f"<{count}Q", *words[number : number + count])

    window = (begin, begin + length)
    rows, *_ = native.call_tree(read, 0, len(words), is_whole, opened, depth, window, ALL, AT_NO_WORK)
    for index, (parent, _, calls, total, own, _) in enumerate(rows):
        assert -1 <= parent < index
        assert calls >= 1
        assert 0 <= own <= total <= length


def test_times_go_on_where_their_43_bits_are_used_up():
    """101 days after the first call."""
    thread = Thread()
    thread.now = (1 << 43) - 5
    thread.enter(1)
    thread.now += 10
    thread.words.append(1 << 43 | thread.now & ((1 << 43) - 1))
    thread.stack.clear()
    begin = (1 << 43) - 7
    assert thread.tree(ALL, begin, begin + 20) == {(1,): (1, 10, 10, False)}


def test_what_the_reader_raises_gets_out():
    def read(number: int, count: int) -> bytes:
        raise OSError(number, "gone")

    with pytest.raises(OSError, match="gone"):
        native.call_tree(read, 0, 1, True, b"", 0, (0, 1), ALL, AT_NO_WORK)
    with pytest.raises(ValueError, match="other bytes"):
        native.call_tree(lambda *_: b"", 0, 1, True, b"", 0, (0, 1), ALL, AT_NO_WORK)
