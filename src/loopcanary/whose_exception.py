"""Whose an exception is that comes up in our code on a thread of the program: ours, which the program never
sees, or one that the program's own handler of a signal raised. Python calls handlers in the middle of what
the main thread does, and what they raise is to end that: a time limit by SIGALRM is gone if ours stops it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, TracebackType
    from typing import TypeVar

    Kind = TypeVar("Kind", bound=Exception)

_LAYERS_MAX = 8


def ours() -> tuple[type[Exception], ...]:
    """The exceptions that an except clause of ours stops: no Exception that a handler raised. Python calls it
    only when something was raised."""
    return ours_of(Exception)


def ours_of(*kinds: type[Kind]) -> tuple[type[Kind], ...]:
    """The same where only these are stopped: what handlers raise is a TimeoutError at times, an OSError."""
    return () if is_of_handler(sys.exception()) else kinds


class _Ours:
    """A block whose exceptions are stopped as by `ours`. Any number of threads at once."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, Exception) and not is_of_handler(error)


stops_ours = _Ours()


def is_of_handler(error: BaseException | None) -> bool:
    """Whether the exception has passed a function that is set as handler of a signal."""
    trace = None if error is None else error.__traceback__
    if trace is None or "signal" not in sys.modules:  # by which handlers are set
        return False
    import _signal  # type: ignore[import-not-found]

    handlers = map(_signal.getsignal, range(1, _signal.NSIG))
    # Most are SIG_DFL or SIG_IGN, which are numbers: to look into each costs 0.3 ms an exception.
    codes = {_code_of(handler) for handler in handlers if callable(handler)}
    return any(code in codes for code in _codes_of(trace))


def _codes_of(trace: TracebackType | None) -> Iterator[CodeType]:
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next


def _code_of(handler: object) -> CodeType | None:
    """The code of the innermost function: what functools.wraps puts around it may be around others, too."""
    from functools import partial  # signal has loaded both
    from types import FunctionType, MethodType

    for _ in range(_LAYERS_MAX):
        if isinstance(handler, FunctionType):
            if "__wrapped__" not in handler.__dict__:
                return handler.__code__
            handler = handler.__dict__["__wrapped__"]
        elif isinstance(handler, MethodType):
            handler = handler.__func__
        elif isinstance(handler, partial):
            handler = handler.func
        else:
            handler = type(handler).__dict__.get("__call__")
    return None
