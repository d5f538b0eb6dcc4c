"""Hooks around functions of toolkits, which do what they did and tell that they were called; what is switched
on in the windows of one thread, and when it is reported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator
from functools import WRAPPER_ASSIGNMENTS, wraps
from types import CodeType, FrameType, FunctionType, MethodDescriptorType
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.patches import Patches
from loopcanary.tracers.places import Places, noted
from loopcanary.whose_exception import ours

Seen = Callable[[FrameType, tuple[Any, ...]], object]
"""Called when the original has returned, with the frame of the program that called it, and the arguments."""
Call = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Shape = Callable[[Call], Any]
_LEFT_OUT: Any = object()


def takes_none(call: Call) -> Any:
    """A function that passes its arguments on. Where there is one too many the call itself is wrong, and no
    frame is in the traceback: PyQt then calls a slot again with fewer of the signal's arguments."""
    return lambda **keywords: call((), keywords)


def takes_one(call: Call) -> Any:
    def hook(first: Any, /, **keywords: Any) -> Any:
        return call((first,), keywords)

    return hook


def takes_two(call: Call) -> Any:
    def hook(first: Any, second: Any = _LEFT_OUT, /, **keywords: Any) -> Any:
        return call((first,) if second is _LEFT_OUT else (first, second), keywords)

    return hook


def takes_cursor(call: Call) -> Any:
    """As `takes_two`; a bool is what a signal says of a button, not a cursor, and PyQt would leave it out."""

    def hook(first: Any, second: Any = _LEFT_OUT, /, **keywords: Any) -> Any:
        is_one = second is _LEFT_OUT or isinstance(second, bool)
        return call((first,) if is_one else (first, second), keywords)

    return hook


def takes_any(call: Call) -> Any:
    """Any number."""
    return lambda *args, **keywords: call(args, keywords)


class Hooks:
    """Stay callable when they are taken out: the program may have kept one."""

    def __init__(self, failed: Callable[[Exception], object]) -> None:
        """`failed`: with what a hook of ours raised."""
        self.is_on = True
        self.has_pyqt = False
        """Hooks take as many arguments as the original, since PyQt tries slots with fewer and fewer."""
        self.stay = False
        """They are never taken out, only off: Qt could not disconnect what is connected by one."""
        self.marks: set[CodeType] = set()
        """The code of the frames that `mark` puts in."""
        self._failed = failed
        self._patches = Patches()

    def observe(self, owner: type[Any], name: str, seen: Seen, shape: Shape = takes_any) -> None:
        """Puts a hook around a method. Nothing is done where the class has none of its own. `shape`: what it
        takes, with self; PySide says itself what is wrong."""
        before = owner.__dict__.get(name)
        if before is None:
            return
        original = getattr(owner, name)

        def bound(*args: Any, **keywords: Any) -> Any:
            # As in the program's own call: what C says of wrong arguments depends on it.
            method = before.__get__(args[0], type(args[0])) if args else original
            return method(*args[1:], **keywords)

        # Those of PyGObject bind as well, and do not show it.
        is_plain = isinstance(before, FunctionType) or not hasattr(before, "__get__")
        called = original if is_plain else bound
        self._patches.lay(owner, name, _like(original, self._shaped(shape, self._around(called, seen))))

    def observe_static(self, owner: type[Any], name: str, seen: Seen, shape: Shape = takes_any) -> None:
        """As `observe`, of a static function."""
        if name in owner.__dict__:
            original = getattr(owner, name)
            self._patches.lay(
                owner, name, staticmethod(_like(original, self._shaped(shape, self._around(original, seen))))
            )

    def mark(self, owner: type[Any], name: str) -> None:
        """Puts a frame of ours around a function that runs a loop."""
        before = owner.__dict__.get(name)
        if before is None:
            return
        original = getattr(owner, name)

        def run(*args: Any, **keywords: Any) -> Any:
            return original(*args, **keywords)

        self.marks.add(run.__code__)
        hook = _like(original, run)
        # Static but for PySide6's exec_, which is for programs of old.
        is_method = isinstance(before, MethodDescriptorType)
        self._patches.lay(owner, name, hook if is_method else staticmethod(hook))

    def take_out(self) -> None:
        """Any thread. What the program has put over a hook stays."""
        self.is_on = False
        if not self.stay:
            self._patches.take_back()

    def _shaped(self, shape: Shape, call: Call) -> Any:
        return shape(call) if self.has_pyqt else takes_any(call)

    def _around(self, original: Any, seen: Seen) -> Call:
        def call(args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            result = original(*args, **keywords)
            if self.is_on:
                try:
                    # None calls a slot, where a thread of C++ does.
                    if (frame := _program_frame()) is not None:
                        seen(frame, (*args, *keywords.values()))
                except ours() as error:  # the program's own work goes on
                    self._failed(error)
            return result

        return call


def _like(original: Any, hook: Any) -> Any:
    """The hook with the original's names. Of what is in C no `__doc__`: PySide makes those of whole modules
    when one is asked for, and may warn on stderr meanwhile."""
    is_python = isinstance(original, FunctionType)
    return wraps(original, [name for name in WRAPPER_ASSIGNMENTS if is_python or name != "__doc__"])(hook)


def _program_frame() -> FrameType | None:
    try:
        return sys._getframe(3)
    except ValueError:
        return None


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
