"""One way out: a queue of its own, and a thread that delivers. The sender never waits."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.notifications.notice import Notice, after_losses

_QUEUE_MAX = 32
_WAITS_S = (2.0, 8.0)
"""Before the second and the third try."""


class DeliveryError(Exception):
    """A notice was not taken. `again`: it may be, later; `wait_s`: not before, as the receiver says."""

    def __init__(self, problem: str, *, again: bool, wait_s: float | None = None) -> None:
        super().__init__(problem)
        self.again = again
        self.wait_s = wait_s


class Receiver(Protocol):
    """Where notices go."""

    @property
    def name(self) -> str:
        """Word for people and files."""

    def deliver(self, notice: Notice) -> None:
        """Bounded in time. DeliveryError where it is not taken."""

    def close(self) -> None:
        """Nothing more comes. The thread that delivered."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What became of notices."""

    sent: int = 0
    lost: int = 0
    """Not delivered, or pushed out of a full queue."""
    lost_stalls: int = 0
    """The stalls those spoke of."""
    problem: str | None = None
    """Why the last one was not delivered; None: it was."""


class Outlet:
    """Sends what it is given to one receiver, in order. `changed` is called on its thread after each."""

    def __init__(
        self,
        receiver: Receiver,
        changed: Callable[[], object] = lambda: None,
        *,
        waits_s: tuple[float, ...] = _WAITS_S,
    ) -> None:
        self.name = receiver.name
        self.counts = Counts()
        self._receiver = receiver
        self._changed = changed
        self._waits_s = waits_s
        self._queue: deque[Notice] = deque()
        self._news = threading.Condition()
        self._is_over = False
        self._unsaid = 0
        """Notices that were lost since the last one that arrived."""
        self._thread = threading.Thread(target=self._run, name=f"loopcanary {self.name}", daemon=True)
        self._thread.start()

    def send(self, notice: Notice) -> None:
        """Takes it; where too many wait, the oldest goes."""
        with self._news:
            if len(self._queue) >= _QUEUE_MAX:
                self._lose(self._queue.popleft(), "too many wait to be sent")
            self._queue.append(notice)
            self._news.notify()

    def close(self, patience_s: float) -> None:
        """Tries each notice that is left once, for at most `patience_s` seconds in all."""
        with self._news:
            self._is_over = True
            self._news.notify()
        self._thread.join(patience_s)
        with self._news:
            while self._queue:
                self._lose(self._queue.popleft(), "the end came first")

    def _run(self) -> None:
        while (notice := self._next()) is not None:
            self._deliver(notice)
            self._changed()
        self._receiver.close()

    def _next(self) -> Notice | None:
        with self._news:
            self._news.wait_for(lambda: self._queue or self._is_over)
            return self._queue.popleft() if self._queue else None

    def _deliver(self, notice: Notice) -> None:
        problem = ""
        for wait_s in (*self._waits_s, None):
            said = self._unsaid
            try:
                self._receiver.deliver(after_losses(notice, said))
            except DeliveryError as error:
                problem = str(error)
                with self._news:
                    self.counts.problem = problem
                self._changed()
                if not error.again or wait_s is None or not self._wait(error.wait_s, wait_s):
                    break
            else:
                with self._news:
                    self.counts.sent += 1
                    self.counts.problem = None
                    self._unsaid -= said  # more may have been lost meanwhile
                return
        with self._news:
            self._lose(notice, problem)

    def _wait(self, asked_s: float | None, otherwise_s: float) -> bool:
        """Before another try; False where the end came first."""
        wait_s = otherwise_s if asked_s is None else asked_s
        deadline_s = time.monotonic() + wait_s
        with self._news:
            self._news.wait_for(lambda: self._is_over, wait_s)
            # At the end a short wait that the receiver asked for is kept; a long one means giving up.
            return not self._is_over or time.monotonic() >= deadline_s

    def _lose(self, notice: Notice, problem: str) -> None:
        """Counts it. Under the lock."""
        self.counts.lost += 1
        self.counts.lost_stalls += notice.stalls
        self.counts.problem = problem
        self._unsaid += 1
