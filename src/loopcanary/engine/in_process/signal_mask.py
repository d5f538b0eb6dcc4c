"""The program's signal mask, for what runs on our thread.

A process that a reporter or interceptor starts inherits the mask: with that of our thread, which takes no
signal of the program's, it would be deaf to SIGTERM.
"""

# `_signal` is built in: no import of it can fail while the program changes sys.path, and `signal`, which few
# programs need, stays unloaded.

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
from collections.abc import Iterator
from contextlib import contextmanager

from loopcanary.facts import is_short_of_descriptors


@contextmanager
def as_in_main_thread() -> Iterator[None]:
    """In this block the calling thread blocks the signals that the main thread blocks, and no others.

    Few of those sent to the process come here: the kernel prefers the main thread, but for CPU timers.
    """
    blocked = _blocked_in_main_thread()
    if blocked is None:
        yield
        return
    before = _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)
    try:
        yield
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def _blocked_in_main_thread() -> list[int] | None:
    """None where the kernel does not say, or the program needs the descriptor."""
    if is_short_of_descriptors():
        return None
    try:
        with open("/proc/self/status", "rb") as status:
            words = next(line for line in status if line.startswith(b"SigBlk:")).split()
    except (OSError, StopIteration):
        return None
    return [number for number in _signal.valid_signals() if int(words[1], 16) >> (number - 1) & 1]
