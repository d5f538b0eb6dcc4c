"""Each call of a thread by itself, with its begin and end, as far back as its file of calls reaches."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from loopcanary.flight.beside import calls_format as layout

_IN: Final = 1 << 63
_TIME_MASK: Final = (1 << layout.TIME_BITS) - 1
_NUMBER_MASK: Final = (1 << 63 - layout.TIME_BITS) - 1


class CallSpan(NamedTuple):
    """A call; times in the file's microseconds."""

    begin_us: int
    end_us: int
    number: int
    """Of its function."""
    is_open: bool
    """It had not returned at the end of the window."""


def timed_calls(
    words: bytes, opened: Sequence[tuple[int, int]], begin_us: int, end_us: int
) -> Iterator[CallSpan]:
    """The calls in a window of time, each before those inside it.

    Args:
        words: of one thread, in their order.
        opened: number and begin of each call that is open after the last word, outermost first.
        begin_us: of the window. What began before, or in words that are gone, is drawn from here on.
        end_us: likewise.
    """
    found = list(_calls(array("Q", words), opened, begin_us, end_us))
    found.sort(key=lambda one: one[0])  # by their begins: one call has the others inside it
    for _, call in found:
        if call.begin_us < end_us and call.end_us > begin_us:
            yield call._replace(begin_us=max(call.begin_us, begin_us), end_us=min(call.end_us, end_us))


def _calls(
    words: Iterable[int], open_at_end: Sequence[tuple[int, int]], begin_us: int, end_us: int
) -> Iterator[tuple[int, CallSpan]]:
    """With a number each, in the order of their begins."""
    opened: list[tuple[int, int, int]] = []  # place in the order, function, begin
    gone: list[tuple[int, int]] = []  # function and end of calls whose begin is gone, innermost first
    for place, word in enumerate(words):
        number, at_us = word >> layout.TIME_BITS & _NUMBER_MASK, word & _TIME_MASK
        if number >= layout.WORK:
            continue
        if word & _IN:
            opened.append((place, number, at_us))
            continue
        # Those inside it end with it; and all of them where its begin is gone.
        while opened:
            began, inner, began_us = opened.pop()
            yield began, CallSpan(began_us, at_us, inner, False)
            if inner == number:
                break
        else:
            gone.append((number, at_us))
    older = open_at_end[: max(0, len(open_at_end) - len(opened))]
    for depth, (number, began_us) in enumerate(older):
        yield depth - len(older) - len(gone), CallSpan(began_us, end_us, number, True)
    since_us = max([begin_us, *(began_us for _, began_us in older)])
    for height, (number, ended_us) in enumerate(gone, 1):
        yield -height, CallSpan(since_us, ended_us, number, False)
    for began, number, began_us in opened:
        yield began, CallSpan(began_us, end_us, number, True)
