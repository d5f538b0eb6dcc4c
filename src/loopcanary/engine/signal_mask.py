"""The program's signal mask, for what runs on our thread.

A process that a reporter or interceptor starts inherits the mask: with that of our thread, which takes no
signal of the program's, it would be deaf to SIGTERM.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_in_main_thread() -> Iterator[None]:
    """In this block the calling thread blocks the signals that the main thread blocks, and no others.

    Few of those sent to the process come here: the kernel prefers the main thread, but for CPU timers.
    """
    import signal

    blocked = _blocked_in_main_thread()
    if blocked is None:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _blocked_in_main_thread() -> list[int] | None:
    """None where the kernel does not say."""
    import signal

    try:
        with open("/proc/self/status", "rb") as status:  # noqa: PTH123
            words = next(line for line in status if line.startswith(b"SigBlk:")).split()
    except (OSError, StopIteration):
        return None
    return [number for number in signal.valid_signals() if int(words[1], 16) >> (number - 1) & 1]
