"""What the engine is wired with: what sees stalls, and what gets scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from contextvars import ContextVar

    from loopcanary.model import LaneTotals, StallEvidence


class Backend(Protocol):
    """What sees stalls: the native engine or the portable one. All methods run under the GIL, on the
    drain thread unless they say otherwise; none raises for anything that the watched program does."""

    name: str

    def start(self) -> None:
        """Begins to watch. Any thread."""

    def stop(self) -> None:
        """Ends watching and its threads, and gives back everything it took. What does not end in time is left
        alone. Any thread."""

    def wait(self, timeout_s: float | None) -> bool:
        """Blocks without the GIL until there is news or the time is over; True if there is news."""

    def wake(self) -> None:
        """Makes a `wait` return. Any thread."""

    def read(self) -> Sequence[StallEvidence]:
        """Stalls that ended, or became a hang or an ANR, since the last call; they are given again when they
        are over (same serial). The portable engine gives no hangs."""

    def release(self, evidence: StallEvidence) -> None:
        """What `read` gave is stored, or not wanted: its place may be used again."""

    def stalls_ended(self) -> int:
        """How many stalls have ended that are to be taken, or were. Some microseconds, where `totals` takes
        milliseconds. One that is being recorded may count twice for a moment."""

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""

    def statistics(self) -> dict[str, int]:
        """Own counters: what was done, and what was dropped for which reason."""


class PartBoundary(Protocol):
    """Stops, counts and says what a part of ours raises: engine.Boundary."""

    def __call__(self, part: str) -> AbstractContextManager[bool, bool]:
        """A block for this part, which stays on when it fails; gives whether it is on."""

    def until_failure(self, part: str) -> AbstractContextManager[bool, bool]:
        """A block for this part, which its first failure switches off."""

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
        """Where this thread's work is from now on."""

    def use_scenes(self, variable: ContextVar[Any], /) -> None:
        """Scenes are used in this process: this variable holds them."""

    def allow(self, nanoseconds: int, /) -> None:
        """The running callback may take this time before it is a stall."""


class Thread(Protocol):
    """A thread that runs one function."""

    def start(self) -> None:
        """RuntimeError or OSError where the system gives none."""

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended by then."""
