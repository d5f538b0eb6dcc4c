"""Stored issues and runs that cannot be read: each is hidden, so that it hides nothing else."""

# ruff: noqa: S608 - statements are put together from this package's own literals; values are bound

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model.search import IssueQuery
from loopcanary.store.records import UnreadableError, issue_of, session_of
from loopcanary.store.search import narrowed, readable_condition
from loopcanary.words.commands import reading
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from loopcanary.model import Issue, Session
    from loopcanary.store.sqlite.database import Database
    from loopcanary.store.sqlite.overlay import Overlay

_NAMED_MAX = 10


class Unreadable:
    """Those of one database that were met. Nothing is written: what reads them may be installed later."""

    def __init__(self, database: Database, overlay: Overlay, notify: Callable[[str], object]) -> None:
        """`notify` gets a line for people about what is met for the first time."""
        self._notify = notify
        self._database = database
        self._overlay = overlay
        self._reasons: dict[str, str] = {}

    @property
    def count(self) -> int:
        """How many there are so far."""
        return len(self._reasons)

    def issues(self, payloads: Iterable[tuple[int, str]]) -> list[Issue]:
        """The issues of these rows. Those that cannot be read are hidden from now on. StoreError."""
        found: list[Issue] = []
        damaged: list[int] = []
        for row, payload in payloads:
            try:
                found.append(issue_of(payload))
            except UnreadableError:
                damaged.append(row)
        if damaged:
            self.hide(damaged)
        return found

    def sessions(self, payloads: Iterable[tuple[str, str, str | None]]) -> list[Session]:
        """Sessions of (id, payload, traces), as `issues`. StoreError."""
        found: list[Session] = []
        damaged: dict[str, str] = {}
        for session, payload, traces in payloads:
            try:
                found.append(session_of(payload, traces))
            except UnreadableError as error:
                damaged[session] = error.reason
        if damaged:
            self._hide(damaged)
        return found

    def hide(self, rows: Sequence[int]) -> bool:
        """Hides the issues of these rows; False where none is new. StoreError."""
        # Where one is, others of the same writer may be: as many as are known are looked at beside it.
        near = 4 * (len(self._reasons) + len(rows))
        spans = [(rows[0] - near, rows[0] + near), *((row, row) for row in rows)]
        clause, values = readable_condition(IssueQuery())
        statement = f"""SELECT id, payload FROM main.issues LEFT JOIN main.payloads USING (row)
                        {narrowed(clause, "row BETWEEN ? AND ?")}"""

        def read(connection: sqlite3.Connection) -> dict[str, str]:
            found = (connection.execute(statement, [*values, *span]) for span in spans)
            return {issue: reason for some in found for issue, reason in _damaged(some)}

        known = self.count
        self._hide(self._database.read(read))
        return self.count > known

    def _hide(self, reasons: dict[str, str]) -> None:
        new = {one: reason for one, reason in reasons.items() if one not in self._reasons}
        self._reasons |= new
        self._overlay.hide(self._reasons)
        if new:
            self._notify(_words(new, self._database.folder))


def _words(reasons: dict[str, str], folder: Path) -> str:
    """A line for people about what was met, by id with its reason."""
    from shlex import quote

    ids = " ".join(f"--id {quote(one)}" for one in list(reasons)[:_NAMED_MAX])
    verb, them = ("is", "it") if len(reasons) == 1 else ("are", "them")
    why = next(iter(reasons.values()))
    return (
        f"{count_of(len(reasons), 'record')} cannot be read and {verb} left out ({why}): a newer loopcanary "
        f"wrote {them}, or the store is damaged: upgrade, or remove {them} with "
        f"`{reading(f'clean {ids}', [folder])}`"
    )


def _damaged(rows: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    for issue, payload in rows:
        try:
            issue_of(payload or "")
        except UnreadableError as error:
            yield issue, error.reason
