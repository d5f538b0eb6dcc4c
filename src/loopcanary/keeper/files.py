"""What the keeper wants of a store's flight files; wired by loopcanary.assembly."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol


class DeathNote(Protocol):
    """What is known of the end of a process."""

    status: int | None
    """As `wait` has it; None: not known."""
    ended_ns: int | None
    """When that was seen, monotonic; None: not known."""


class WatchedLife(Protocol):
    """A watched process, by its flight file. The file is not trusted: any method may raise."""

    pid: int | None
    """Its number here; None: it has none in this namespace, or that cannot be said."""

    @property
    def death(self) -> DeathNote | None:
        """None: of a process that has no number here."""

    @property
    def has_more(self) -> bool:
        """Whether it still has something to say, though its file may be gone."""

    def is_over(self) -> bool:
        """Whether the process has certainly ended."""

    def look(self, now_ns: int, *, is_rung: bool) -> int | None:
        """Takes what there is to take from a living process. When to look again at the latest; None: when the
        bell rings. Raises what `Files.take_in` does."""

    def finish(self, now_ns: int) -> None:
        """The process is over: takes what is complete. The rest is `Files.take_in`'s, and so is what is
        raised."""

    def close(self) -> None:
        """Lets go of the file."""


class Files(Protocol):
    """The flight files of one store."""

    folder: Path
    """Where they, or links to them, are."""

    def names(self) -> Collection[str]:
        """Of all that is in the folder, and may have to be dealt with."""

    def open(self, name: str) -> WatchedLife | None:
        """The process of this file; None where there is none (yet), or it is not ours to watch."""

    def take_in(self, name: str, death: DeathNote | None) -> None:
        """Stores what a dead process left, and removes its file; leaves a living one's alone. `death`: of
        the life that there was.

        StoreFailure where the store fails."""

    def hand_on(self, now_ns: int) -> int | None:
        """Hands on what is new; after each turn. When to call it again; None: after the next turn."""

    def end(self) -> None:
        """Nothing more comes."""

    def status(self) -> dict[str, object]:
        """For people: what was taken in."""


class StoreFailure(Exception):  # noqa: N818 - a result rather than an error of ours
    """The store cannot be used now: a full disk, a lock that is held. Later it may."""
