"""What a receiver has acknowledged, and the bundle that is on its way to it; beside the store.

A bundle is written down before it is sent, with what is in it, and struck out when it is acknowledged. What
is between is sent again as it is, byte by byte and under the same key, so that who has it knows it.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from loopcanary.late_dataclass import dataclass
from loopcanary.model import StallState
from loopcanary.uploads.errors import UploadError

FILE_NAME = "uploads.db"
OUTBOX = "outbox"
_VERSION = 1
_TABLES = (
    """CREATE TABLE acknowledged (
        receiver TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (receiver, id)
    ) WITHOUT ROWID""",
    "CREATE TABLE pending (receiver TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE pending_items (
        receiver TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (receiver, id)
    ) WITHOUT ROWID""",
)
Item = tuple[str, str]
"""Id and state, by which a stall that went on since is another thing to send."""


def item_of(issue_id: str, state: StallState) -> Item:
    """An issue as it was sent."""
    return issue_id, state.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A bundle on its way."""

    path: Path
    digest: str
    """SHA-256 of the file, in hexadecimal."""
    items: tuple[Item, ...]


class Journal:
    """The journal, for one upload; a second one at the same time is refused. UploadError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._outbox = folder / OUTBOX
        self._path = folder / FILE_NAME
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._outbox.mkdir(mode=0o700, exist_ok=True)
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=0)
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error
        try:
            # From its first transaction on it is this process's alone, until it closes or dies.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN EXCLUSIVE")
            self._make_tables(connection)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.close()
            raise self._failed(error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise UploadError(f"{self._path} was written by a newer loopcanary: upgrade this one")
        if version == 0:
            for table in _TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA user_version = {_VERSION}")

    def _failed(self, error: Exception) -> UploadError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            return UploadError(f"another upload from {self._folder} is at work")
        return UploadError(f"{self._path} cannot be used: {error}")

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def state_acknowledged(self, receiver: str, item_id: str) -> str | None:
        """The state in which the receiver has it; None: it has not."""
        statement = "SELECT state FROM acknowledged WHERE receiver = ? AND id = ?"
        try:
            row = self._connection.execute(statement, [receiver, item_id]).fetchone()
        except sqlite3.Error as error:
            raise self._failed(error) from error
        return None if row is None else str(row[0])

    def pending(self, receiver: str) -> Parcel | None:
        """What was on its way to the receiver when an upload ended; leftovers of no journal's are removed."""
        known = dict(self._rows("SELECT receiver, digest FROM pending"))
        with suppress(OSError):
            for path in self._outbox.iterdir():
                if path.stem not in known.values():
                    self._remove(path)  # what another program put there, and cannot be removed, is no matter
        digest = known.get(receiver)
        if digest is None:
            return None
        items = tuple(self._rows("SELECT id, state FROM pending_items WHERE receiver = ?", receiver))
        parcel = Parcel(path=self._parcel_path(digest), digest=digest, items=items)
        if _digest_of(parcel.path) == digest:
            return parcel
        self._strike(receiver)  # the file was removed by another: what was in it is chosen anew
        return None

    def _rows(self, statement: str, *values: str) -> list[tuple[str, str]]:
        try:
            return [(str(one), str(two)) for one, two in self._connection.execute(statement, values)]
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _parcel_path(self, digest: str) -> Path:
        return self._outbox / f"{digest}.zip"

    def pack(self, receiver: str, write: Callable[[IO[bytes]], Iterable[Item]]) -> Parcel | None:
        """A bundle that is on its way from now on; None where `write` had nothing to put into it."""
        part = self._outbox / f"{os.getpid()}.part"
        try:
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w+b") as out:
                items = tuple(write(out))
                out.flush()
                os.fsync(out.fileno())
            digest = _digest_of(part)
            if not items or digest is None:
                part.unlink(missing_ok=True)
                return None
            part.replace(self._parcel_path(digest))
        except OSError as error:
            part.unlink(missing_ok=True)
            raise UploadError(
                f"{self._outbox} cannot take the next bundle: {error.strerror or error}"
            ) from error
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        with self._writing() as connection:
            connection.execute("INSERT INTO pending VALUES (?, ?)", [receiver, digest])
            rows = [(receiver, *item) for item in items]
            connection.executemany("INSERT INTO pending_items VALUES (?, ?, ?)", rows)
        return Parcel(path=self._parcel_path(digest), digest=digest, items=items)

    def acknowledge(self, receiver: str, parcel: Parcel) -> None:
        with self._writing() as connection:
            rows = [(receiver, *item) for item in parcel.items]
            connection.executemany("INSERT OR REPLACE INTO acknowledged VALUES (?, ?, ?)", rows)
            self._forget(connection, receiver)
        self._remove(parcel.path)

    def refuse(self, receiver: str, parcel: Parcel) -> None:
        """The receiver never takes it: its records may go into other bundles."""
        self._strike(receiver)
        self._remove(parcel.path)

    def _strike(self, receiver: str) -> None:
        with self._writing() as connection:
            self._forget(connection, receiver)

    @staticmethod
    def _forget(connection: sqlite3.Connection, receiver: str) -> None:
        connection.execute("DELETE FROM pending WHERE receiver = ?", [receiver])
        connection.execute("DELETE FROM pending_items WHERE receiver = ?", [receiver])

    @staticmethod
    def _remove(path: Path) -> None:
        with suppress(OSError):
            path.unlink()


def _digest_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
