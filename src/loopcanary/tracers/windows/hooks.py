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
        self._failed = failed
        self.is_on = True
        self._put: list[tuple[type[Any], str, Any, Any]] = []
        self.marks: set[CodeType] = set()
        """The code of the frames that `mark` puts in."""

    def observe(self, owner: type[Any], name: str, seen: Seen, *, is_static: bool = False) -> None:
        """Puts a hook around a method. Nothing is done where the class has none of its own."""

        def around(original: Any) -> Any:
            @_wraps(original)
            def call(*args: Any, **keywords: Any) -> Any:
                result = original(*args, **keywords)
                if self.is_on:
                    try:
                        seen(sys._getframe(1), (*args, *keywords.values()))
                    except Exception as error:  # noqa: BLE001 - the program's own work goes on
                        self._failed(error)
                return result

            return call

        self._set(owner, name, around, is_static=is_static)

    def mark(self, owner: type[Any], name: str) -> None:
        """Puts a frame of ours around a static function that runs a loop."""

        def around(original: Any) -> Any:
            @_wraps(original)
            def run(*args: Any, **keywords: Any) -> Any:
                return original(*args, **keywords)

            self.marks.add(run.__code__)
            return run

        self._set(owner, name, around, is_static=True)

    def take_out(self) -> None:
        """Any thread. What the program has put over a hook stays."""
        self.is_on = False
        for owner, name, ours, before in reversed(self._put):
            if owner.__dict__.get(name) is ours:
                setattr(owner, name, before)
        self._put.clear()

    def _set(self, owner: type[Any], name: str, around: Callable[[Any], Any], *, is_static: bool) -> None:
        before = owner.__dict__.get(name)
        if before is None:
            return
        hook = around(getattr(owner, name))
        # PySide6 has exec_ as a method, where all others have a static function.
        is_method = not is_static or isinstance(before, MethodDescriptorType)
        setattr(owner, name, hook if is_method else staticmethod(hook))
        self._put.append((owner, name, owner.__dict__[name], before))


def _wraps(original: Any) -> Callable[[Any], Any]:
    """Of what is written in C no `__doc__`: PySide makes that of whole modules when one is asked for, and may
    warn on stderr meanwhile."""
    is_python = isinstance(original, FunctionType)
    return wraps(original, [name for name in WRAPPER_ASSIGNMENTS if is_python or name != "__doc__"])
