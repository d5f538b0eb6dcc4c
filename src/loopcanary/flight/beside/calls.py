"""What a thread called in a stall, from the files of calls beside a flight file. Trusts no byte of them.

They may be of a living process, whose threads write on: then what was overwritten meanwhile is read again
from further on, or counted as lost.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from loopcanary.flight.beside import calls_format as layout
from loopcanary.flight.beside.calls_named import CallsInWindow, frame_of, methods_of, named
from loopcanary.flight.header import TickClock, bounded
from loopcanary.flight.source import ByteSource, FlightError, open_source
from loopcanary.late_dataclass import dataclass
from loopcanary.model import StackFrame, StallEvidence
from loopcanary.model.calls import TimedCall, TracedCalls
from loopcanary.model.method_map import CALLS, CALLS_FILES, Method

ROWS_MAX: Final = 200
"""The longest rows of a tree that are kept."""
AT_NO_WORK: Final = (0, 0)
"""lc_calls_at_work (native/core/methods/call_tree.h): not known."""
_LOOKS: Final = 5
SHARES: Final = (0, 16, 2)
"""What is left out of a file at a first, second and third try, while its thread overwrites it: 1/16, 1/2."""
LOST, NONE, READ = 0, 1, 2
"""lc_words_before (native/core/methods/call_tree.h)."""

CallTree = Callable[
    ...,
    tuple[
        Sequence[tuple[int, int, int, int, int, bool]],
        int,
        int,
        int,
        Sequence[tuple[int, int, int]],
        tuple[int, int],
    ],
]
"""The extension's `call_tree`."""


def read_calls(
    flight: str,
    clock: TickClock,
    evidence: StallEvidence,
    call_tree: CallTree,
    owns: Callable[[str], bool],
) -> TracedCalls | None:
    """What the stall's thread called in it; None where its calls were not traced, or cannot be read.

    Args:
        flight: path of the flight file.
        clock: that file's.
        evidence: of the stall.
        call_tree: makes the tree of the words.
        owns: whether a file is the program's own code.
    """
    with suppress(FlightError):
        for number in range(CALLS_FILES):
            calls = CallsFile.of_stall(f"{flight}{CALLS}{number}", clock, evidence)
            if calls is not None:
                try:
                    tree = calls.tree(Window.of_stall(evidence), call_tree)
                finally:
                    calls.close()
                return None if tree is None else named(tree, methods_of(flight), owns)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A part of a thread's time, monotonic."""

    begin_ns: int
    end_ns: int | None
    """None: it is not over, or its end was not noted."""
    last_look_ns: int
    """Then, at least, it was not over."""

    @classmethod
    def of_stall(cls, evidence: StallEvidence) -> Window:
        """From its begin to its end."""
        return cls(begin_ns=evidence.begin_ns, end_ns=evidence.end_ns, last_look_ns=evidence.last_look_ns)


class ReadSoFar(NamedTuple):
    """How far a thread's calls were read."""

    words: int
    us: int
    """The time of the last word, in the file's microseconds."""
    at_work: tuple[int, int] = AT_NO_WORK
    """The work that runs then, and how many calls were open when it began."""


class CallsFile:
    """The calls of one thread."""

    def __init__(self, source: ByteSource, clock: TickClock) -> None:
        """Raises FlightError where it is not a file of calls that we read."""
        self._source = source
        self.clock = clock
        """Of the flight file; its rate is refined while the process runs."""
        header = self._header()
        if header["magic"] != layout.MAGIC or header["byte_order"] != layout.BYTE_ORDER:
            raise FlightError(source.name, "is not a file of calls")
        if header["version"] != layout.VERSION:
            raise FlightError(source.name, f"has version {header['version']}; only {layout.VERSION} is read")
        words = header["words"]
        is_power = words & (words - 1) == 0
        fits = layout.WORDS_OFFSET + 8 * words <= source.size
        if not (is_power and fits and layout.WORDS_LEAST <= words <= layout.WORDS_MOST and header["us_q64"]):
            raise FlightError(source.name, "has an impossible header")
        self._words, self._base, self._us_q64 = words, header["base_ticks"], header["us_q64"]

    @classmethod
    def of_stall(cls, path: str, clock: TickClock, evidence: StallEvidence) -> CallsFile | None:
        """The open file at `path` if it is of the stall's thread, else None."""
        try:
            source = open_source(path)
        except FlightError:
            return None
        try:
            found = cls(source, clock)
            if found.is_about(evidence):
                return found
        except FlightError:
            pass
        source.close()
        return None

    def close(self) -> None:
        self._source.close()

    def is_about(self, evidence: StallEvidence) -> bool:
        """Whether the stall was on the file's thread. Numbers of threads are given out again."""
        header = self._header()
        until_ns = evidence.last_look_ns if evidence.end_ns is None else evidence.end_ns
        is_over = header["closed_ns"] != 0 and header["closed_ns"] < evidence.begin_ns
        return header["tid"] == evidence.tid and header["opened_ns"] <= until_ns and not is_over

    @property
    def owner(self) -> tuple[int, int]:
        """The kernel's number of the thread, and since when, monotonic: a file is another's after it."""
        header = self._header()
        return header["tid"], header["opened_ns"]

    def tree(self, of: Window, call_tree: CallTree) -> CallsInWindow | None:
        """The calls in the window; of one that is not over, up to the last that was written. None where the
        thread overwrites them faster than they are read."""
        for share in SHARES:
            seen = self._look()
            oldest = self._oldest(seen.written)
            # From further on, where the thread writes meanwhile.
            first = oldest + (self._words // share if share and oldest else 0)
            window = self._window(of, seen)
            answer = call_tree(
                self._read,
                first,
                seen.written,
                _before(first),
                seen.opened,
                seen.depth,
                window,
                ROWS_MAX,
                seen.at_work if first else AT_NO_WORK,
            )
            if self._oldest(self._header()["written"]) <= first:
                return self._as_tree(answer, self._lost(first, answer[1], window[0]))
        return None

    def progress(self, now_ns: int) -> ReadSoFar:
        """Counts all that was written until now as read."""
        seen = self._look()
        return ReadSoFar(seen.written, self._us(now_ns), seen.at_work)

    def tree_since(
        self, before: ReadSoFar, now_ns: int, call_tree: CallTree, rows: int
    ) -> tuple[CallsInWindow, ReadSoFar]:
        """The calls since an earlier look, and how far this one came. Words that were overwritten between the
        two looks are counted; their time is in no call. `rows`: how many are kept."""
        written, end_us = before.words, before.us
        for share in SHARES:
            seen = self._look()
            oldest = max(before.words, self._oldest(seen.written))
            first = min(seen.written, oldest + (self._words // share if share else 0))
            begin_us = before.us
            if first < seen.written:
                at_us = self._time_of(first, before.us)
                # If nothing was lost, all words belong to it, also where the clocks differ a little.
                begin_us = min(before.us, at_us) if first == before.words else max(before.us, at_us)
            last_us = self._time_of(seen.written - 1, begin_us) if seen.written else 0
            end_us = max(begin_us, self._us(now_ns), last_us)
            answer = call_tree(
                self._read,
                first,
                seen.written,
                READ if first == before.words else _before(first),
                seen.opened,
                seen.depth,
                (begin_us, end_us),
                rows,
                before.at_work if first == before.words else seen.at_work,
            )
            if self._oldest(self._header()["written"]) <= first:
                progress = ReadSoFar(seen.written, end_us, answer[5])
                return self._as_tree(answer, first - before.words), progress
            written = seen.written
        lost = written - before.words
        return CallsInWindow(rows=(), lost=lost, left_out=0, left_out_ns=0), ReadSoFar(written, end_us)

    def copy(self, window: Window) -> CallsCopy:
        """What is there of a window that is over, to be read when the thread may overwrite it."""
        seen = self._look()
        first = self._oldest(seen.written)
        words = self._read(first, seen.written - first)
        gone = max(0, self._oldest(self._header()["written"]) - first)  # overwritten meanwhile
        return CallsCopy(self, words[8 * gone :], seen.opened, self._window(window, seen))

    def ns_of(self, us: int) -> int:
        """Nanoseconds of so many of the file's microseconds."""
        return self._ns(us)

    def at_ns(self, us: int) -> int:
        """The monotonic time at so many of the file's microseconds."""
        ticks = self._base + (us << 64) // self._us_q64 - self.clock.anchor_ticks
        return bounded(self.clock.anchor_ns + (ticks * self.clock.rate_q32 >> 32))

    def _header(self) -> dict[str, Any]:
        return layout.HEADER.read(self._source.read(0, layout.HEADER.size))

    def _look(self) -> _Moment:
        """Header and open calls of one moment; of about one where the thread calls without a pause."""
        header, opened = self._header(), b""
        for _ in range(_LOOKS):
            count = min(header["depth"], layout.OPEN_MAX)
            opened = self._source.read(layout.OPEN_OFFSET, count * layout.OPEN.size)
            before, header = header, self._header()
            if header == before:
                break
        number, around = header["at_work"] & 0xFFFF_FFFF, header["at_work"] >> 32
        return _Moment(header["written"], header["depth"], opened, (number, around))

    def _window(self, of: Window, seen: _Moment) -> tuple[int, int]:
        begin_us = self._us(of.begin_ns)
        if of.end_ns is not None:
            return begin_us, max(begin_us, self._us(of.end_ns))
        last_us = self._us(of.last_look_ns)
        if seen.written:
            last_us = max(last_us, self._time_of(seen.written - 1, last_us))
        return begin_us, max(begin_us, last_us)

    def _oldest(self, written: int) -> int:
        """The number of the oldest word. The one before it may be overwritten by one that is not counted yet:
        the thread may be in the middle of that, or was killed there."""
        return max(0, written - int(self._words) + 1)

    def _time_of(self, number: int, near_us: int) -> int:
        """When the word of this number was written."""
        at = layout.WORDS_OFFSET + number % self._words * 8
        return _nearest(int.from_bytes(self._source.read(at, 8), "little"), near_us)

    def _us(self, ns: int) -> int:
        """Microseconds of the file at a monotonic time."""
        clock = self.clock
        ticks = clock.anchor_ticks + ((ns - clock.anchor_ns) << 32) // max(1, clock.rate_q32)
        return int(min(max(0, (ticks - self._base) * self._us_q64 >> 64), (1 << 62) - 1))

    def _ns(self, us: int) -> int:
        """The nearest nanoseconds: 10 us in the file are not 9,999 ns."""
        return bounded(((us * self.clock.rate_q32 << 64) // self._us_q64 + (1 << 31)) >> 32)

    def _read(self, number: int, count: int) -> bytes:
        """So many words from this number on."""
        at = number % self._words
        here = min(count, self._words - at)
        read = self._source.read(layout.WORDS_OFFSET + at * 8, here * 8)
        return read + (self._source.read(layout.WORDS_OFFSET, (count - here) * 8) if here < count else b"")

    def _lost(self, first: int, first_us: int, begin_us: int) -> int:
        """How many words of the window were overwritten, by the marks: at least so many."""
        if first == 0 or first_us <= begin_us:
            return 0
        marks = array("Q", self._source.read(layout.MARKS_OFFSET, layout.MARKS * 8))
        newest = first // layout.MARK_WORDS
        lost = 1
        for mark in range(newest, max(-1, newest - layout.MARKS + 1), -1):
            if marks[mark % layout.MARKS] < begin_us:
                break
            lost = max(lost, first - mark * layout.MARK_WORDS)
        return lost

    def _as_tree(self, answer: Any, lost: int) -> CallsInWindow:
        rows, _, left_out, left_out_us, work, _ = answer
        return CallsInWindow(
            rows=[(*row[:3], self._ns(row[3]), self._ns(row[4]), row[5]) for row in rows],
            lost=lost,
            left_out=left_out,
            left_out_ns=self._ns(left_out_us),
            work=[(number, times, self._ns(total_us)) for number, times, total_us in work],
        )


def _before(first: int) -> int:
    return LOST if first else NONE


class CallsCopy(NamedTuple):
    """The calls of one thread as they were at one moment."""

    file: CallsFile
    words: bytes
    opened: bytes
    window_us: tuple[int, int]

    def each(self, methods: dict[int, Method], owns: Callable[[str], bool]) -> Iterator[TimedCall]:
        """The calls of the window, each before those inside it. The file may be closed."""
        begin_us, end_us = self.window_us
        opened = [(one["id"], one["us"]) for one in layout.OPEN.every(self.opened)]
        frames: dict[int, StackFrame] = {}
        for call in timed_calls(self.words, opened, begin_us, end_us):
            if call.number not in frames:
                frames[call.number] = frame_of(methods.get(call.number), call.number, owns)
            yield TimedCall(
                begin_ns=self.file.ns_of(call.begin_us - begin_us),
                length_ns=self.file.ns_of(call.end_us - call.begin_us),
                frame=frames[call.number],
                is_open=call.is_open,
            )


@dataclass(frozen=True, slots=True)
class _Moment:
    """The header and the open calls at one moment."""

    written: int
    depth: int
    opened: bytes
    at_work: tuple[int, int]
    """The work that runs after the last word."""


def _nearest(word: int, near_us: int) -> int:
    """The time in a word, which has its lower bits: the one that is nearest."""
    mask = (1 << layout.TIME_BITS) - 1
    ahead = (word - near_us) & mask
    return near_us + ahead if ahead <= mask >> 1 else near_us - (mask + 1 - ahead)


_IN: Final = 1 << 63
_TIME_MASK: Final = (1 << layout.TIME_BITS) - 1
_NUMBER_MASK: Final = (1 << 63 - layout.TIME_BITS) - 1


class CallSpan(NamedTuple):
    """A call; times in the file's microseconds."""

    begin_us: int
    end_us: int
    number: int
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
    """The calls with a number each, in the order of their begins."""
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
