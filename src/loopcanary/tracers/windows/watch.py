"""What is switched on in the windows of one thread, and when it is reported."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from types import CodeType, FrameType
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.tracers.places import Places, noted

LOOK_SHARE = 0.55
"""Of the limit, between two looks: two of them are longer than it, also where timers are some percent off."""
_FIRST_SHARE = 0.5
"""A look counts from this share of the limit on."""
_KEPT_MAX = 1_000


@dataclass(slots=True)
class LeftOn:
    """Something that was switched on."""

    blocked_by: str
    """See model.issues.windows."""
    what: Callable[[], Any]
    """A weak reference to what has it; or a function. None: it is gone."""
    places: Places
    since_ns: int
    times: int = 1
    seen: str = ""
    """What has it, where the last look saw that it does harm."""
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class Harm:
    """That a state does harm now."""

    subject: str
    patience: int = 1
    """How many limits it has to last: more, where people may mean it."""


HARMLESS = Harm("")
"""It is on, and nobody misses anything."""

Told = Callable[[LeftOn, int], object]
"""Called with a state that is reported, and how long it has lasted, in ns."""


class WindowWatch:
    """One thread's. Where two looks in a row, half of the limit apart, find that a state does harm, and it
    has lasted for the limit, it is reported once. A look is a call of the loop: the loop is healthy."""

    def __init__(self, limit_ns: int, told: Told, now_ns: Callable[[], int]) -> None:
        self.look_ms = max(int(limit_ns * LOOK_SHARE) // 1_000_000, 1)
        """Until a look is due, when something was switched on."""
        self._limit_ns = limit_ns
        self._told = told
        self._now_ns = now_ns
        self._states: dict[object, LeftOn] = {}
        self._asked_ns: int | None = None

    def on(self, key: object, blocked_by: str, what: Callable[[], Any], places: Callable[[], Places]) -> None:
        """It was switched on; once more, where it is on: the first line counts."""
        known = self._states.get(key)
        thing = what()
        if known is not None and known.what() is thing:
            known.times += 1
            return
        while len(self._states) >= _KEPT_MAX:
            del self._states[next(iter(self._states))]
        self._states[key] = LeftOn(blocked_by, what, places(), self._now_ns())

    def off(self, key: object) -> None:
        """It was switched off."""
        self._states.pop(key, None)

    def things(self) -> list[Any]:
        """What has a state that is on."""
        return [state.what() for state in self._states.values()]

    def wants_look(self) -> bool:
        """Whether to ask the loop for one: none is on its way. A very late one is lost, with its loop."""
        now_ns = self._now_ns()
        if self._asked_ns is not None and now_ns < self._asked_ns + 3 * self.look_ms * 1_000_000:
            return False
        self._asked_ns = now_ns
        return True

    def look(self, harm: Callable[[LeftOn], Harm | None], running: Container[CodeType]) -> bool:
        """On the loop. `harm`: None where it is off or gone. `running`: the code of functions that the loop
        waits for: what one of these switched on, it may still switch off. Whether to look again."""
        self._asked_ns = None
        now_ns = self._now_ns()
        for key, state in tuple(self._states.items()):
            found = harm(state)
            if found is None:
                self.off(key)
            elif not state.is_told:
                is_running = any(code in running for code, _ in state.places)
                self._judge(state, HARMLESS if is_running else found, now_ns - state.since_ns)
        return any(not state.is_told for state in self._states.values())

    def _judge(self, state: LeftOn, found: Harm, lasted_ns: int) -> None:
        limit_ns = self._limit_ns * found.patience
        if state.seen and found.subject and lasted_ns >= limit_ns:
            state.is_told = True
            self._told(state, lasted_ns)
        state.seen = found.subject if lasted_ns >= limit_ns * _FIRST_SHARE else ""

    def end(self) -> None:
        """The program ends: reports what the last look saw and is still on. Any thread; asks no toolkit."""
        states, self._states = self._states, {}
        for state in states.values():
            if state.seen and not state.is_told and state.what() is not None:
                self._told(state, self._now_ns() - state.since_ns)


def places_inside(frame: FrameType, is_loop: Callable[[FrameType], bool]) -> Places:
    """Where it was called from, up to what the loop has called."""
    return noted(frame, lambda each: each.f_back is not None and is_loop(each.f_back))


def codes_inside(frame: FrameType | None, is_loop: Callable[[FrameType], bool]) -> set[CodeType]:
    """The code of the functions that the outermost loop has called and waits for; without a loop, of all."""
    found: set[CodeType] = set()
    inside: set[CodeType] | None = None
    for each in _outwards(frame):
        if is_loop(each):
            inside = set(found)
        found.add(each.f_code)
    return found if inside is None else inside


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
