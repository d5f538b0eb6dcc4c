"""The seams between the parts. Every part on the rim implements one of these; assembly wires them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from loopcanary.model import Issue, LaneTotals, Session, Stall, StallEvidence


class Backend(Protocol):
    """What sees stalls: the native engine or the portable one. All methods run under the GIL, on the
    drain thread unless they say otherwise; none raises for anything that the watched program does."""

    name: str

    def start(self) -> None:
        """Begins to watch. Any thread."""

    def stop(self) -> None:
        """Ends watching, joins its threads and gives back everything it took. Any thread."""

    def wait(self, timeout_s: float | None) -> bool:
        """Blocks without the GIL until there is news or the time is over; True if there is news."""

    def wake(self) -> None:
        """Makes a `wait` return. Any thread."""

    def take(self) -> Sequence[StallEvidence]:
        """Stalls that ended, or became an ANR, since the last call; an ANR is given once while it
        lasts and once more when it is over (same serial)."""

    def release(self, evidence: StallEvidence) -> None:
        """What `take` gave is stored, or not wanted: its place may be used again."""

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""

    def statistics(self) -> dict[str, int]:
        """Own counters: what was done, and what was dropped for which reason."""


class Probe(Protocol):
    """Tells the engine what one kind of loop does."""

    kind: str

    def install(self) -> None:
        """Patches the loop kind, if its library is there, or when it is imported. Idempotent."""

    def uninstall(self) -> None:
        """Takes back what is still ours."""


class Interceptor(Protocol):
    """Sees each issue before it is stored: returns it, a changed one, or None to drop it."""

    def __call__(self, issue: Issue, /) -> Issue | None:
        """On the drain thread. One that raises is switched off."""


@runtime_checkable
class Reporter(Protocol):
    """Tells people about issues while the program runs. Called on the drain thread."""

    name: str

    def report(self, issue: Issue, repeated: int) -> None:
        """One issue; `repeated`: how many of the same fingerprint there were before in this session."""

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """The session ends. `stalls`: what was reported in it, oldest first, bounded."""


class Sink(Protocol):
    """Where issues and sessions are kept; the store implements it. Thread-safe."""

    def put_session(self, session: Session) -> None:
        """Adds the session or replaces what is known of it."""

    def put_stall(self, stall: Stall) -> None:
        """Adds the stall or replaces an earlier state of it (same id)."""

    def rest(self, patience_s: float) -> bool:
        """Closes what is open and keeps every thread out until `go_on`: a fork is about to be. False, and
        nothing is to be undone, where that takes longer. StoreError and the like where it fails."""

    def go_on(self) -> None:
        """The fork is over, in the parent. Called after a `rest` that gave True."""

    def close(self) -> None:
        """Lets go of files; a later put opens them again."""
