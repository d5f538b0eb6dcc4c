"""What is put around functions of toolkits: they do what they did, and tell that they were called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, wraps
from types import CodeType, FrameType, FunctionType, MethodDescriptorType
from typing import Any

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
    """The same."""

    def hook(first: Any, /, **keywords: Any) -> Any:
        return call((first,), keywords)

    return hook


def takes_two(call: Call) -> Any:
    """The same."""

    def hook(first: Any, second: Any = _LEFT_OUT, /, **keywords: Any) -> Any:
        return call((first,) if second is _LEFT_OUT else (first, second), keywords)

    return hook


def takes_cursor(call: Call) -> Any:
    """The same; what a signal says of a button is no cursor, and PyQt would leave it out."""

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
        self._put: list[tuple[type[Any], str, Any, Any]] = []

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
        self._set(owner, name, _like(original, self._shaped(shape, self._around(called, seen))))

    def observe_static(self, owner: type[Any], name: str, seen: Seen, shape: Shape = takes_any) -> None:
        """As `observe`, of a static function."""
        if name in owner.__dict__:
            original = getattr(owner, name)
            self._set(
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
        self._set(owner, name, hook if isinstance(before, MethodDescriptorType) else staticmethod(hook))

    def take_out(self) -> None:
        """Any thread. What the program has put over a hook stays."""
        self.is_on = False
        if self.stay:
            return
        for owner, name, ours, before in reversed(self._put):
            if owner.__dict__.get(name) is ours:
                setattr(owner, name, before)
        self._put.clear()

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
                except Exception as error:  # noqa: BLE001 - the program's own work goes on
                    self._failed(error)
            return result

        return call

    def _set(self, owner: type[Any], name: str, hook: Any) -> None:
        before = owner.__dict__[name]
        setattr(owner, name, hook)
        self._put.append((owner, name, owner.__dict__[name], before))


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
