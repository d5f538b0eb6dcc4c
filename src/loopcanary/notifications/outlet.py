"""One way out: a queue, and a thread for as long as it delivers, so that the sender never waits."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from loopcanary.late_dataclass import dataclass
from loopcanary.notifications.notice import Notice, after_losses
from loopcanary.protocols.engine import Thread
from loopcanary.unpatched import unpatched

_QUEUE_MAX = 32
_S = 1_000_000_000
_WAITS_S = (2.0, 8.0)
"""How long to wait before the second and the third try."""
_WHOLE_NS = 10 * _S
"""For one try: a receiver may send its answer byte by byte."""
_LOOK_EVERY_NS = _S // 2
"""How often to look while a thread delivers."""


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
        """Sends one notice. DeliveryError where it is not taken. The outlet's thread."""

    def cut(self) -> None:
        """Ends a `deliver` that takes too long. Any thread."""

    def close(self) -> None:
        """Nothing more comes."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What became of notices."""

    sent: int = 0
    lost: int = 0
    """Not delivered, or pushed out of a full queue."""
    lost_stalls: int = 0
    """How many stalls the lost notices spoke of."""
    problem: str | None = None
    """Why the last one was not delivered; None: it was."""


class Outlet:
    """Sends what it is given to one receiver, in order. One thread calls it; time is an argument."""

    def __init__(
        self,
        receiver: Receiver,
        make_thread: Callable[[Callable[[], None]], Thread],
        *,
        waits_s: tuple[float, ...] = _WAITS_S,
    ) -> None:
        self.name = receiver.name
        self.counts = Counts()
        self._receiver = receiver
        self._make_thread = make_thread
        self._waits_s = waits_s
        self._lock = unpatched("_thread", "allocate_lock")()
        self._queue: deque[Notice] = deque()
        self._tries = 0
        """Of the first in the queue."""
        self._due_ns = 0
        """When the first in the queue may be tried."""
        self._is_over = False
        self._unsaid = 0
        """Notices that were lost since the last one that arrived."""
        self._thread: Thread | None = None
        """The one that delivers, until it is seen to have ended."""
        self._is_busy = False
        self._began_ns = 0
        """When the thread began its try."""

    def send(self, notice: Notice) -> None:
        """Takes it; where too many wait, the oldest goes. `look` has it delivered."""
        with self._lock:
            if len(self._queue) >= _QUEUE_MAX:
                self._lose(self._queue.popleft(), "too many notifications wait to be sent")
            self._queue.append(notice)

    def look(self, now_ns: int) -> int | None:
        """Begins to deliver what is due, and cuts a try that takes too long. When to look again; None: all is
        delivered."""
        with self._lock:
            is_busy, waits, due_ns, began_ns = self._is_busy, bool(self._queue), self._due_ns, self._began_ns
        if is_busy:
            if now_ns - began_ns > _WHOLE_NS:
                self._receiver.cut()
            return now_ns + _LOOK_EVERY_NS
        if not waits or now_ns < due_ns:
            return due_ns if waits else None
        self._start()
        return now_ns + _LOOK_EVERY_NS

    def rest(self, patience_s: float) -> bool:
        """Waits for the thread that delivers. Returns whether it has ended."""
        return self._thread is None or self._thread.join(patience_s)

    def close(self, patience_s: float) -> None:
        """Delivers what may be delivered now, for at most `patience_s` seconds; the rest is lost."""
        with self._lock:
            self._is_over = True
            starts = bool(self._queue) and not self._is_busy
        if starts and not self._start():
            self._run()  # CPython 3.12 gives no thread while the interpreter ends
        if self.rest(patience_s):
            self._receiver.close()
        with self._lock:
            while self._queue:
                self._lose(self._queue.popleft(), "the process ended before they were sent")

    def _start(self) -> bool:
        """False: the system gives no thread now."""
        self._is_busy, self._began_ns = True, time.monotonic_ns()
        thread = self._make_thread(self._run)
        try:
            thread.start()
        except (OSError, RuntimeError):
            self._is_busy = False
            return False
        self._thread = thread
        return True

    def _run(self) -> None:
        """On a thread of its own, until the queue is empty or the receiver is to be tried later."""
        while (notice := self._next()) is not None:
            problem: DeliveryError | None = None
            said = self._unsaid
            try:
                self._receiver.deliver(after_losses(notice, said))
            except DeliveryError as error:
                problem = error
            except Exception as error:  # noqa: BLE001 - nothing may end this thread without a count
                problem = DeliveryError(type(error).__name__, again=False)
            with self._lock:
                self._settle(notice, said, problem)

    def _next(self) -> Notice | None:
        """The next that may be tried now; None: from then on this thread delivers no more."""
        with self._lock:
            now_ns = time.monotonic_ns()
            if self._queue and now_ns >= self._due_ns:
                self._began_ns = now_ns
                return self._queue.popleft()
            self._is_busy = False
            return None

    def _settle(self, notice: Notice, said: int, error: DeliveryError | None) -> None:
        """Counts what became of the notice, or puts it back for another try. Under the lock."""
        self.counts.problem = None if error is None else str(error)
        if error is None:
            self.counts.sent += 1
            self._unsaid -= said  # more may have been lost meanwhile
        elif error.again and self._tries < len(self._waits_s) and not self._is_over:
            wait_s = self._waits_s[self._tries] if error.wait_s is None else error.wait_s
            self._due_ns = time.monotonic_ns() + int(wait_s * _S)
            self._tries += 1
            self._queue.appendleft(notice)
            return
        else:
            self._lose(notice, str(error))
        self._tries = 0

    def _lose(self, notice: Notice, problem: str) -> None:
        """Counts it. Under the lock."""
        self.counts.lost += 1
        self.counts.lost_stalls += notice.stalls
        self.counts.problem = problem
        self._unsaid += 1
