"""Protocols that third parties implement: tracers, interceptors, reporters, importers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from loopcanary.late_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from loopcanary.model import Config, Issue, LagIssue, Session, Stall


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the terminal, or the reader of the stream, can show."""

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
        """Whether the stream goes to a terminal, with or without colours."""

    def look(self) -> Look:
        """What the terminal, or the reader of the stream, can show."""


class TracerPort(Protocol):
    """Takes the reports of a third party's tracer. Any thread, under the GIL. Its methods raise nothing and
    do not wait."""

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
    """Records one kind of evidence. Each start of the engine makes a new tracer.

    Its methods run on a thread of their own, and have two seconds each. With `on_program_thread = True`,
    `init` and `start` run on the thread that starts the engine. An optional `destroy()` is called when all
    its reports have been taken, but not in a forked child. statistics() calls an optional `counts() ->
    dict[str, int]`, on any thread.
    """

    name: str

    def init(self, desk: TracerPort) -> None:
        """Called once, before `start`: nothing is to be done yet.

        Args:
            desk: Where to report. It may be kept.
        """

    def start(self) -> None:
        """Begins to record, as the engine runs now. Called again after a `stop` if the program starts the
        tracer."""

    def stop(self) -> None:
        """Removes everything that it has put into the program. Called once for each `start`, also after one
        that failed; any thread. Also called in a forked child, which does not have the parent's threads: a
        wait for a thread or a lock would not end there."""


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
    """The run that begins, as the maker of a reporter gets it."""

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
        """The process's name, if several processes share its stderr; else empty."""

    @property
    def is_by_hand(self) -> bool:
        """Whether a person started this process with `loopcanary run`. False for its children."""

    def screen(self) -> TextScreen | None:
        """The process's stderr. None: no person reads it, for example if it is a pipe from a child to its
        parent."""

    def exit_changer(self) -> Callable[[int], object] | None:
        """A function that sets the exit status of a program that would end with 0. None: this process cannot
        set it. Raises ImportError if the extension is missing."""


@runtime_checkable
class Reporter(Protocol):
    """Shows people issues while the program runs. Called on the drain thread. A plugin registers a function
    that gets the WatchedRun and returns a reporter, or None if this run needs no reporter.

    statistics() calls an optional `counts() -> dict[str, int]`, on any thread. An optional `recall(stall)`
    gets the stalls that an earlier keeper has reported.
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
    """The counters of a plugin. Raises the plugin's own exceptions, and TypeError if it returns anything but
    counters."""
    found = counts()
    if not isinstance(found, dict) or not all(isinstance(count, int) for count in found.values()):
        raise TypeError("it did not return a dict of whole numbers")
    return found
