"""What third parties write: tracers, interceptors, reporters, importers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from loopcanary.late_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from loopcanary.model import Config, Issue, LagIssue, Session, Stall


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the other end can show."""

    colour: bool = False
    links: bool = False
    width: int = 80
    folder: str = ""
    """Paths below it are shown relative to it."""


class TextScreen(Protocol):
    """Shows blocks of text to the person who reads a program's stderr. Never blocks, never raises."""

    dropped: int
    """Blocks that could not be shown."""

    def write(self, block: str) -> bool:
        """Shows the block; False if it was dropped."""

    def is_terminal(self) -> bool:
        """Whether the other end is one; it need not have colours."""

    def look(self) -> Look:
        """What it can show."""


class TracerPort(Protocol):
    """Where a third party's tracer reports what it found. Any thread, under the GIL; nothing is raised, and
    nothing is waited for."""

    def report(self, issue: LagIssue) -> bool:
        """Takes an issue for the drain thread, which checks it, cuts it to size and completes it.

        Args:
            issue: Of a registered kind.

        Returns:
            False where it is not taken: too many wait, or the tracer is switched off.
        """

    def failed(self, error: Exception) -> None:
        """Switches the tracer off, and logs once why. Its `stop` is called, on this thread.

        Args:
            error: What it failed with, inside the program.
        """


@runtime_checkable
class Tracer(Protocol):
    """Records one kind of evidence by itself; one is made for each start of the engine. Its methods run on
    a thread of their own, and are given up after two seconds; `init` and `start` of one that has
    `on_program_thread = True` run on the thread that starts the engine. `destroy()`, where it has one, is
    called when all that it reported has been taken; not in a forked child. One that also has
    `counts() -> dict[str, int]` is asked by statistics(), on any thread."""

    name: str

    def init(self, desk: TracerPort) -> None:
        """Called once, before `start`: nothing is to be done yet.

        Args:
            desk: Where to report. It may be kept.
        """

    def start(self) -> None:
        """The engine runs: begins to record. And again after a `stop`, where it is asked for."""

    def stop(self) -> None:
        """Takes back everything that it has put into the program. Called once for each `start`, whether
        that went well or not; any thread. Called in a forked child, too, where the parent's threads are not
        there: what waits for one, or for a lock, never ends."""


class Interceptor(Protocol):
    """Sees each issue before it is stored: returns it, a changed one, or None to drop it."""

    def __call__(self, issue: Issue, /) -> Issue | None:
        """On the drain thread. One that raises is switched off.

        Args:
            issue: Of any kind, complete; frozen.

        Returns:
            What is stored and reported in its place; None: nothing is.
        """


class WatchedRun(Protocol):
    """What a reporter is made for: the run that begins."""

    @property
    def config(self) -> Config:
        """The settings in force."""

    @property
    def session(self) -> Session:
        """The process."""

    @property
    def folder(self) -> Path | None:
        """The program's current folder; None: this process's own."""

    @property
    def process(self) -> str:
        """Who it is, where several share a stderr; else empty."""

    @property
    def is_by_hand(self) -> bool:
        """Whether it is the process that a person started with `loopcanary run`, and no child of it."""

    def screen(self) -> TextScreen | None:
        """Its stderr. None: no person reads it, such as a child's that is a pipe into its parent."""

    def exit_changer(self) -> Callable[[int], object] | None:
        """Sets the status of a program that would end with 0. None: not from this process. ImportError: the
        extension is not there."""


@runtime_checkable
class Reporter(Protocol):
    """Shows people issues while the program runs. Called on the drain thread. Registered is what makes
    it: called with the WatchedRun; None: this run wants none.

    One that also has `counts() -> dict[str, int]` is asked by statistics(), on any thread. One that has
    `recall(stall)` is given those that a keeper before this one has reported.
    """

    name: str

    def report(self, issue: Issue, repeated: int) -> None:
        """Shows people one issue. A reporter that raises is switched off.

        Args:
            issue: Of any kind, as it was stored.
            repeated: How many of the same fingerprint there were before in this session.
        """

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """The session ends.

        Args:
            session: With its end and its loops' figures.
            stalls: The latest of those reported in it, oldest first; none where others keep them.
        """


class Importer(Protocol):
    """Reads files of one format into a store."""

    def recognises(self, path: Path) -> bool:
        """Whether the file is of its format: by what is in it, not by its name."""

    def read(self, path: Path, taker: Any, *, now_wall_ns: int) -> None:
        """Gives all records of the file to the taker, and treats them as hostile input.

        Args:
            path: A file that `recognises` knows.
            taker: A store.Intake: `add_session`, `add_issue`, `add_remark`.
            now_wall_ns: The time of the import.

        Raises:
            BundleError: The file is not as it should be; nothing of it is kept, as with any other error.
        """


def counts_of(counts: Callable[[], object]) -> dict[str, int]:
    """What a plugin has counted. Raises what it raises; TypeError: it gives something else."""
    found = counts()
    if not isinstance(found, dict) or not all(isinstance(count, int) for count in found.values()):
        raise TypeError("it did not return a dict of whole numbers")
    return found
