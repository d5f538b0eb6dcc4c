"""The keeper's loop: sleeps until a bell, a signal, the end of a process or a time that is due."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence

from loopcanary.keeper.exits import waits_for_children
from loopcanary.keeper.kept_store import KeptStore
from loopcanary.keeper.seat import Signals

_S = 1_000_000_000
_MS = 1_000_000
_FAREWELL_NS = _S // 2
"""Less than `Signals` leaves until the end in any case."""
_SEAT_EVERY_NS = 5 * _S
"""Another keeper has the seat, or a folder is gone: it may be free, or there, later."""
_ASK_EVERY_NS, _ASK_FOR_NS = _S // 10, 5 * _S
"""How often a keeper that a program has started is asked for its seat, and for how long it is not reported
that it still has it."""
_SEATS_EVERY_NS = 10 * _S
"""A bell in memory may be removed (RemoveIPC of systemd-logind), of which nothing signals."""
_CHILD_REST_NS, _CHILD_LIFE_NS = 5 * _S, 60 * _S
_CHILD_EVERY_NS = _S
"""The child of a watched program (a container's first process, a subreaper) ends after such a rest, and not
before such a life, so that a program that waits for all its children comes to an end. The next stall starts
another."""


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
        parent: Callable[[], int] = os.getppid,
        waits_for_children: Callable[[int], bool] = waits_for_children,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`linger_ns`: ends this long after the last watched process, at once where others have the seats;
        None: it stays. `parent`: gives the number of this process's; `waits_for_children`: says whether a
        process does. `show`: gets a line for people, `complain` one of what is wrong; neither raises."""
        self._stores = stores
        self._signals = signals
        self._show = show
        self._complain = complain
        self._linger_ns = linger_ns
        self._parent = parent
        self._waits_for_children = waits_for_children
        self._monotonic_ns = monotonic_ns
        self._seated: list[KeptStore] = []
        self._sit_ns: int | None = None
        self._asked_ns: dict[str, int] = {}
        """Since when another keeper is asked for its seat, by store."""
        self._said: set[str] = set()
        self._idle_since_ns: int | None = None
        self._began_ns = self._worked_ns = monotonic_ns()
        self._seats_ns: int | None = None
        """When to look whether the seats are there; None: nothing is watched."""
        self._child_ns: int | None = None
        """When to look again whether this child of a watched program is to end."""
        self._leave_ns: int | None = None
        """The end was asked for: when to leave what is watched to another keeper."""

    def run(self) -> None:
        """Runs until the end is asked for, or comes by itself."""
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
            if self._is_over(now_ns) or self._ends_as_child(now_ns, is_woken=changed or bool(ready)):
                return
            ready = self._wait()
            if self._is_to_leave(self._monotonic_ns()):
                return
            changed = self._signals.folders_changed()

    def end(self) -> None:
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
        own = (self._sit_ns, self._end_ns(), self._leave_ns, self._child_ns, self._seats_ns)
        dues = [*own, *(store.due_ns() for store in self._seated)]
        soonest_ns = min((due for due in dues if due is not None), default=None)
        timeout_ms = None
        if soonest_ns is not None:
            timeout_ms = max(-((self._monotonic_ns() - soonest_ns) // _MS), 0)
        return {descriptor for descriptor, _ in poll.poll(timeout_ms)}

    # ---- seats ------------------------------------------------------------------------------

    def _sit(self, now_ns: int) -> None:
        """Takes the seats that are free, and asks for those of keepers that programs have started."""
        self._sit_ns = None
        for store in self._stores:
            if store not in self._seated and self._begins(store, now_ns):
                self._seated.append(store)

    def _begins(self, store: KeptStore, now_ns: int) -> bool:
        folder = store.seat.store
        try:
            if store.begin(now_ns):
                self._said.discard(folder)
                self._asked_ns.pop(folder, None)
                self._show(f"at work: {folder}")
                return True
            problem = "another keeper is running"
            is_asked = self._linger_ns is None and store.seat.ask_for()
        except OSError as error:
            problem, is_asked = f"the store cannot be opened now: {error}", False
        if self._linger_ns is not None:
            return False
        again_ns = now_ns + (_ASK_EVERY_NS if is_asked else _SEAT_EVERY_NS)
        self._sit_ns = min(self._sit_ns or again_ns, again_ns)
        asked_ns = self._asked_ns.setdefault(folder, now_ns) if is_asked else None
        is_trouble = asked_ns is None or now_ns - asked_ns > _ASK_FOR_NS
        if is_trouble and folder not in self._said:
            self._said.add(folder)
            self._complain(f"{folder}: {problem}; this keeper waits")
        return False

    def _keep_seats(self, now_ns: int, *, changed: bool) -> None:
        """Gives up the seats whose folders are gone; takes those that have become free."""
        looks = changed or (self._seats_ns is not None and now_ns >= self._seats_ns)
        if looks or self._seats_ns is None:
            self._seats_ns = now_ns + _SEATS_EVERY_NS if self._is_anything_watched() else None
        for store in list(self._seated) if looks else ():
            if not store.seat.is_there():
                store.end()
                self._seated.remove(store)
                self._sit_ns = now_ns if self._linger_ns is None else None
        if self._sit_ns is not None and self._sit_ns <= now_ns:
            self._sit(now_ns)

    # ---- the end ----------------------------------------------------------------------------

    def _is_to_leave(self, now_ns: int) -> bool:
        """The end was asked for, or another keeper wants the seat. A keeper that a program has started waits
        a moment: for programs that end with it, since a service manager asks all processes of a service at
        once; or until it has nothing at hand."""
        is_replaced = self._linger_ns is not None and any(store.is_asked_for for store in self._seated)
        if not (self._signals.is_end or is_replaced):
            return False
        if self._leave_ns is None:
            self._leave_ns = now_ns + (0 if self._linger_ns is None else _FAREWELL_NS)
        is_done = is_replaced and all(store.is_idle for store in self._seated)
        return now_ns >= self._leave_ns or is_done or not self._is_anything_watched()

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

    def _ends_as_child(self, now_ns: int, *, is_woken: bool) -> bool:
        """Whether the program whose child this is has no work for it, and should not have to wait for it."""
        if is_woken or not all(store.is_idle for store in self._seated):
            self._worked_ns = now_ns
        parent = self._parent()
        self._child_ns = None
        if self._linger_ns is None or not any(store.watches(parent) for store in self._seated):
            return False
        rested_ns, lived_ns = self._worked_ns + _CHILD_REST_NS, self._began_ns + _CHILD_LIFE_NS
        if now_ns < rested_ns:
            self._child_ns = rested_ns
            return False
        self._child_ns = min(now_ns + _CHILD_EVERY_NS, max(lived_ns, now_ns))
        return now_ns >= lived_ns or self._waits_for_children(parent)

    def _is_anything_watched(self) -> bool:
        return any(store.watched for store in self._seated)
