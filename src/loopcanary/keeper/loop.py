"""The keeper's loop: sleeps until a bell, a signal, the end of a process or a time that is due."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence

from loopcanary.keeper.kept_store import KeptStore
from loopcanary.keeper.signals import Signals

_S = 1_000_000_000
_MS = 1_000_000
_FAREWELL_NS = _S // 2
"""Less than signals.py has until the end in any case."""
_SEAT_EVERY_NS = 5 * _S
"""Another keeper has the seat, or a folder is gone: it may be free, or there, later."""


class Keeper:
    """One thread."""

    def __init__(
        self,
        stores: Sequence[KeptStore],
        signals: Signals,
        show: Callable[[str], object],
        complain: Callable[[str], object],
        *,
        linger_ns: int | None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`linger_ns`: ends this long after the last watched process, at once where others have the seats;
        None: it stays. `show`: gets a line for people, `complain` one of what is wrong; neither raises."""
        self._stores = stores
        self._signals = signals
        self._show = show
        self._complain = complain
        self._linger_ns = linger_ns
        self._monotonic_ns = monotonic_ns
        self._seated: list[KeptStore] = []
        self._sit_ns: int | None = None
        self._said: set[str] = set()
        self._idle_since_ns: int | None = None
        self._leave_ns: int | None = None
        """The end was asked for: when to leave what is watched to another keeper."""

    def run(self) -> None:
        """Until the end is asked for, or comes by itself."""
        self._sit(self._monotonic_ns())
        ready: set[int] = set()
        changed = False
        while self._seated or self._linger_ns is None:
            now_ns = self._monotonic_ns()
            for store in self._seated:
                begun_ns = self._monotonic_ns()
                store.turn(now_ns, ready, changed=changed)
                over_ns = self._monotonic_ns()
                store.has_worked(over_ns, over_ns - begun_ns)
                if self._is_to_leave(over_ns):
                    return
            self._keep_seats(now_ns, changed=changed)
            if self._is_over(now_ns):
                return
            ready = self._wait()
            if self._is_to_leave(self._monotonic_ns()):
                return
            changed = self._signals.folders_changed()

    def end(self) -> None:
        """Gives everything back."""
        for store in self._stores:
            store.end()
        self._signals.forgo_deadline()

    def _wait(self) -> set[int]:
        """The descriptors that are readable."""
        poll = select.poll()
        poll.register(self._signals.descriptor, select.POLLIN)
        for store in self._seated:
            for descriptor in store.descriptors():
                poll.register(descriptor, select.POLLIN)
        dues = [self._sit_ns, self._end_ns(), self._leave_ns, *(store.due_ns() for store in self._seated)]
        soonest_ns = min((due for due in dues if due is not None), default=None)
        timeout_ms = None
        if soonest_ns is not None:
            timeout_ms = max(-((self._monotonic_ns() - soonest_ns) // _MS), 0)
        return {descriptor for descriptor, _ in poll.poll(timeout_ms)}

    # ---- seats ------------------------------------------------------------------------------

    def _sit(self, now_ns: int) -> None:
        """Takes the seats that are free."""
        for store in self._stores:
            if store in self._seated:
                continue
            if self._begins(store, now_ns):
                self._seated.append(store)
        waits = self._linger_ns is None and len(self._seated) < len(self._stores)
        self._sit_ns = now_ns + _SEAT_EVERY_NS if waits else None

    def _begins(self, store: KeptStore, now_ns: int) -> bool:
        problem = "another keeper is at work"
        try:
            if store.begin(now_ns):
                self._said.discard(store.seat.store)
                self._show(f"at work: {store.seat.store}")
                return True
        except OSError as error:
            problem = f"it cannot be kept now: {error.strerror or error}"
        if self._linger_ns is None and store.seat.store not in self._said:
            self._said.add(store.seat.store)
            self._complain(f"{store.seat.store}: {problem}; this one waits")
        return False

    def _keep_seats(self, now_ns: int, *, changed: bool) -> None:
        """Gives up the seats whose folders are gone; takes those that have become free."""
        for store in list(self._seated) if changed else ():
            if not store.seat.is_there():
                store.end()
                self._seated.remove(store)
                self._sit_ns = now_ns if self._linger_ns is None else None
        if self._sit_ns is not None and self._sit_ns <= now_ns:
            self._sit(now_ns)

    # ---- the end ----------------------------------------------------------------------------

    def _is_to_leave(self, now_ns: int) -> bool:
        """The end was asked for. One that a program has started waits a moment for those that end with it: a
        service manager asks all processes of a service at once."""
        if not self._signals.is_end:
            return False
        if self._leave_ns is None:
            self._leave_ns = now_ns + (0 if self._linger_ns is None else _FAREWELL_NS)
        return now_ns >= self._leave_ns or not self._is_anything_watched()

    def _end_ns(self) -> int | None:
        if self._linger_ns is None or self._idle_since_ns is None:
            return None
        is_short = any(store.seat.is_short for store in self._seated)
        return self._idle_since_ns + (0 if is_short else self._linger_ns)

    def _is_over(self, now_ns: int) -> bool:
        """Whether nothing has been watched for long enough, and nothing has begun meanwhile."""
        if self._is_anything_watched():
            self._idle_since_ns = None
            return False
        if self._idle_since_ns is None:
            self._idle_since_ns = now_ns
        end_ns = self._end_ns()
        if end_ns is None or now_ns < end_ns:
            return False
        # A program that begins now has rung for us, and is seen here. Or it finds no keeper, starts one, and
        # may be seen here, too: then that one has the seat.
        for store in self._seated:
            store.give_back()
            store.look_once(now_ns)
        if not self._is_anything_watched():
            return True
        self._seated = [store for store in self._seated if self._begins(store, now_ns)]
        return not self._seated

    def _is_anything_watched(self) -> bool:
        return any(store.watched for store in self._seated)
