"""The zoo's programs on gevent, with nothing patched: those that await nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import gevent

Program = Callable[[], Coroutine[Any, Any, None]]


def play(program: Program, quiet_s: float, plays: Callable[[], None], played: Callable[[], None]) -> None:
    """Runs the program as a greenlet of its own, with a quiet time before and after; tells when it plays."""
    gevent.sleep(quiet_s)
    plays()
    gevent.spawn(_to_its_end, program()).get()
    gevent.sleep(quiet_s)
    played()


def _to_its_end(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("a program for gevent awaits nothing")
