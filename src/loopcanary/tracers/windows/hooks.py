"""What is put around functions of toolkits: they do what they did, and tell that they were called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import WRAPPER_ASSIGNMENTS, wraps
from types import CodeType, FrameType, FunctionType, MethodDescriptorType
from typing import Any

Seen = Callable[[FrameType, tuple[Any, ...]], object]
"""Called when the original has returned, with the frame of the program that called it, and the arguments."""


class Hooks:
    """Stay callable when they are taken out: the program may have kept one."""

    def __init__(self, failed: Callable[[Exception], object]) -> None:
        """`failed`: with what a hook of ours raised."""
        self.is_on = True
        self.marks: set[CodeType] = set()
        """The code of the frames that `mark` puts in."""
        self._failed = failed
        self._put: list[tuple[type[Any], str, Any, Any]] = []

    def observe(self, owner: type[Any], name: str, seen: Seen) -> None:
        """Puts a hook around a method. Nothing is done where the class has none of its own."""
        before = owner.__dict__.get(name)
        if before is None:
            return
        original = getattr(owner, name)

        def bound(*args: Any, **keywords: Any) -> Any:
            # As in the program's own call: what C says of wrong arguments depends on it.
            method = before.__get__(args[0], type(args[0])) if args else original
            return method(*args[1:], **keywords)

        called = original if isinstance(before, FunctionType) else bound
        self._set(owner, name, _like(original, self._around(called, seen)))

    def observe_static(self, owner: type[Any], name: str, seen: Seen) -> None:
        """As `observe`, of a static function."""
        if name in owner.__dict__:
            original = getattr(owner, name)
            self._set(owner, name, staticmethod(_like(original, self._around(original, seen))))

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
        for owner, name, ours, before in reversed(self._put):
            if owner.__dict__.get(name) is ours:
                setattr(owner, name, before)
        self._put.clear()

    def _around(self, original: Any, seen: Seen) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            result = original(*args, **keywords)
            if self.is_on:
                try:
                    seen(sys._getframe(1), (*args, *keywords.values()))
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
