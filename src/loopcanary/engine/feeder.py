"""Feeds a service manager's watchdog from a thread of Python: weaker than the native engine.

A call that holds the GIL for longer than the manager waits looks dead from here, also where it is legal, and
is not named.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from loopcanary.whose_exception import ours_of

_TRIES = 4
"""Looks in an interval: a loop that is back is soon fed for."""


class Feeder:
    """The thread. `start` and `stop` by one thread at a time."""

    def __init__(
        self,
        address: bytes,
        interval_ns: int,
        longest: Callable[[], tuple[str, str, int] | None],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`longest`: thread, kind of loop and ns of the longest turn that goes on; None: each waits."""
        self._address = b"\0" + address[1:] if address.startswith(b"@") else address
        self._interval_ns = interval_ns
        self._longest = longest
        self._clock = clock
        self._stopping = threading.Event()
        self._next_ns = 0
        self._is_stuck = False

    def start(self) -> None:
        """RuntimeError where the system gives no thread."""
        threading.Thread(target=self._run, name="loopcanary-feeder", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while True:
            self._look(self._clock())
            if self._stopping.wait(self._interval_ns / _TRIES / 1e9):
                return

    def _look(self, now_ns: int) -> None:
        thread, kind, held_ns = self._longest() or ("", "", 0)
        if held_ns > self._interval_ns:
            if self._is_stuck:
                return
            self._is_stuck = True
            since = f"has not waited for events for {held_ns / 1e9:.1f} s"
            self._send(f"STATUS=loopcanary: {thread} ({kind}) {since}")
        elif self._is_stuck or now_ns >= self._next_ns:
            over = "\nSTATUS=loopcanary: every loop makes progress again" if self._is_stuck else ""
            if self._send(f"WATCHDOG=1{over}"):
                self._is_stuck = False
                self._next_ns = now_ns + self._interval_ns * (_TRIES - 1) // _TRIES

    def _send(self, text: str) -> bool:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
                sending.setblocking(False)
                sending.sendto(text.encode("utf-8", "replace"), self._address)
        except ours_of(OSError):
            return False
        return True
