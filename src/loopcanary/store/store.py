"""The store: where issues and sessions are kept between a program's runs and its reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.store.database import Database
from loopcanary.store.maintenance import Maintenance
from loopcanary.store.reader import Reader
from loopcanary.store.retention import Retention
from loopcanary.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Store(Reader, Writer, Maintenance):
    """Issues and sessions of any number of processes in one folder.

    Thread-safe; every method raises only StoreError. Nothing is opened before it is needed.
    `folder` is made where it is not there; one that may only be read can be read. `notify` gets one line
    for people when something is out of the ordinary, such as a damaged database that was set aside.
    """

    def __init__(
        self,
        folder: Path,
        *,
        retention: Retention | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.folder = folder
        self.notices: list[str] = []
        self._retention = retention or Retention()
        self._database = Database(folder, notify=notify or self.notices.append)

    @property
    def path(self) -> Path:
        """The database file."""
        return self._database.path

    def open(self) -> None:
        """Opens the database now rather than at the first use, so that what is wrong is said now."""
        self._database.open()

    def close(self) -> None:
        """Closes the database. A later use opens it again."""
        self._database.close()

    def rest(self, patience_s: float) -> bool:
        """Closes the database and keeps every thread from it until `go_on`; False where that takes longer."""
        return self._database.rest(patience_s)

    def go_on(self) -> None:
        """The rest is over."""
        self._database.go_on()
