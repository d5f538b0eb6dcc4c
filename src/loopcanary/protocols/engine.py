"""Protocols between the engine and its parts: backends that see stalls, and listeners that get scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from contextvars import ContextVar

    from loopcanary.model import LaneTotals, StallEvidence


class Backend(Protocol):
    """The native or the portable engine, which sees stalls. All methods run under the GIL, on the drain
    thread unless they say otherwise; none raises for anything that the watched program does."""

    name: str

    def start(self) -> None:
        """Begins to watch. Any thread."""

    def stop(self) -> None:
        """Stops watching, ends its threads and releases its resources. A thread that does not end in time is
        left alone. Any thread."""

    def wait(self, timeout_s: float | None) -> bool:
        """Blocks without the GIL until there is news or the time is over; True if there is news."""

    def wake(self) -> None:
        """Makes a `wait` return. Any thread."""

    def read(self) -> Sequence[StallEvidence]:
        """Stalls that ended, or became a hang or an ANR, since the last call; they are given again when they
        are over (same serial). The portable engine gives no hangs."""

    def release(self, evidence: StallEvidence) -> None:
        """The caller has stored or dropped this evidence of `read`: its slot may be used again."""

    def stalls_ended(self) -> int:
        """Number of stalls that have ended, read or not. It takes some microseconds, where `totals` takes
        milliseconds. A stall that is being recorded may count twice for a moment."""

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""

    def statistics(self) -> dict[str, int]:
        """The backend's own counters: work done, and drops by reason."""


class PartBoundary(Protocol):
    """Catches, counts and logs what a part of loopcanary raises: engine.Boundary."""

    def __call__(self, part: str) -> AbstractContextManager[bool, bool]:
        """A `with` block for this part, which stays on if it fails. The block gets whether the part is on."""

    def until_failure(self, part: str) -> AbstractContextManager[bool, bool]:
        """A `with` block for this part, whose first failure switches the part off."""

    def reasons(self) -> dict[str, str]:
        """First failure of each part."""


class ScopeListener(Protocol):
    """The engine that gets scopes: native or portable. Called on the thread that works."""

    def work_begin(self, name: str, /) -> Any:
        """A piece of work begins; the token goes to work_end, None where there is nothing to end. A token
        that is false: the work is a part of other work, and not timed by itself."""

    def work_end(self, token: Any, /) -> None:
        """The piece of work ends."""

    def set_scene(self, scene: str | None, /) -> None:
        """Sets the scene of this thread's work from now on; None: no scene."""

    def use_scenes(self, variable: ContextVar[Any], /) -> None:
        """Scenes are used in this process: this variable holds them."""

    def allow(self, nanoseconds: int, /) -> None:
        """The running callback may take this time before it is a stall."""


class Thread(Protocol):
    """A thread that runs one function."""

    def start(self) -> None:
        """Starts the thread. Raises RuntimeError or OSError if the system has no thread to give."""

    def join(self, timeout_s: float) -> bool:
        """Waits for the thread to end, and returns whether it has ended in time."""
