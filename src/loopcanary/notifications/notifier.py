"""The notifier: what this process stores goes to the ways that settings name. The keeper has one for its
store, a program that judges its stalls itself has its own."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Config, Issue, IssueKind, Session, Stall
from loopcanary.notifications.desk import Desk
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import Outlet, Receiver
from loopcanary.protocols.engine import Thread
from loopcanary.whose_folder import below, open_file
from loopcanary.words.commands import reading

_S = 1_000_000_000
_LOOK_EVERY_NS = _S
"""How often to look while a notice waits for its time."""
_BEFORE_NS = 60 * _S
"""What a keeper that was killed stored so short a time before it last sent, it may not have sent."""
_OLD_NS = 3_600 * _S
"""An issue that ended longer ago is not news: a program of last week."""


class Notifier:
    """The notifier of one store, with the settings of the first program that asks. One thread. Raises what an
    issue's kind raises."""

    def __init__(
        self,
        store: Path,
        ignored: Callable[[], Collection[str]],
        make_thread: Callable[[Callable[[], None]], Thread],
    ) -> None:
        """`store`: its folder; `ignored`: gives the fingerprints of bugs that people ignore; `make_thread`:
        makes the threads that deliver."""
        self._store = store
        self._ignored = ignored
        self._make_thread = make_thread
        self._desk: Desk | None = None
        self._outlets: list[Outlet] = []
        self._written: dict[str, dict[str, Any]] = {}
        self._was_asked = False
        self._sent_before_ns = 0
        """Wall time until which earlier processes have sent what was stored."""

    def ask(self, config: Config, tell: Callable[[str], object]) -> None:
        """These settings may name ways. `tell`: gets a line for each that cannot be used."""
        ways = sorted(set(config.notify) - {"bell"})
        if not ways or self._was_asked:
            return
        self._was_asked = True
        self._sent_before_ns = max(map(self._last_sent_ns, ways))
        for way in ways:
            try:
                self._outlets.append(Outlet(receiver_of(way, config), self._make_thread))
            except UnusableWayError as error:
                tell(str(error))
        if not self._outlets:
            return
        self._desk = Desk(
            from_ns=config.notify_from_ns,
            kinds=frozenset(map(IssueKind, config.notify_kinds)),
            every_ns=config.notify_every_ns,
            per_minute=config.notify_per_minute,
            ignored=self._ignored,
            tell=self._send,
            details=reading("report", [self._store]),
        )
        self._write_status()  # who sends is known before anything is sent

    def reporter(self, session: Callable[[], Session]) -> NoticeReporter:
        """A reporter of one program, whose facts `session` gives."""
        return NoticeReporter(self, session)

    def hear(self, issue: Issue, session: Session) -> None:
        """Hears of an issue that is new, or in a new state."""
        over_ns = issue.began_wall_ns + issue.duration_ns
        if self._desk is not None and over_ns >= time.time_ns() - _OLD_NS:
            self._desk.hear(issue, session, time.monotonic_ns())

    def hear_all(self, issues: Iterable[Issue], sessions: Iterable[Session]) -> None:
        """Hears of issues of dead processes, which are in the store now."""
        by_id = {session.id: session for session in sessions}
        for issue in issues:
            if issue.session in by_id:  # an interceptor may have changed it
                self.hear(issue, by_id[issue.session])

    def hear_again(self, issue: Issue, session: Session) -> None:
        """Hears of an issue that an earlier keeper has stored, and may have sent."""
        if issue.began_wall_ns + issue.duration_ns >= self._sent_before_ns:
            self.hear(issue, session)

    def look(self, now_ns: int) -> int | None:
        """Sends what has waited long enough. When to look again; None: when an issue is heard of."""
        if self._desk is None:
            return None
        self._desk.look(now_ns)
        dues = [due_ns for outlet in self._outlets if (due_ns := outlet.look(now_ns)) is not None]
        if self._desk.withheld:
            dues.append(now_ns + _LOOK_EVERY_NS)
        self._write_status()
        return min(dues, default=None)

    def rest(self, patience_s: float) -> None:
        """Waits for the threads that deliver."""
        for outlet in self._outlets:
            outlet.rest(patience_s)

    def end(self, patience_s: float) -> None:
        """Delivers what is left, for this time at most by each way."""
        desk, self._desk = self._desk, None
        if desk is None:
            return
        desk.end()
        for outlet in self._outlets:
            outlet.close(patience_s)
        self._write_status(is_whole=True)
        self._outlets.clear()
        self._was_asked = False

    def _send(self, notice: Notice) -> None:
        for outlet in self._outlets:
            outlet.send(notice)

    def _last_sent_ns(self, way: str) -> int:
        """Until when what was stored has been sent this way, wall time."""
        status = read_status(self._store, way)
        try:
            written_ns = status_path(self._store, way).stat().st_mtime_ns
        except OSError:
            return 0
        return written_ns - (0 if status is not None and status.get(IS_WHOLE) is True else _BEFORE_NS)

    def _write_status(self, *, is_whole: bool = False) -> None:
        """For `loopcanary doctor`, where something has changed."""
        withheld = 0 if self._desk is None else self._desk.withheld
        for outlet in self._outlets:
            counts = outlet.counts
            status = {
                "pid": os.getpid(),
                "sent": counts.sent,
                "lost": counts.lost,
                "lost_stalls": counts.lost_stalls,
                "withheld": withheld,
                "problem": counts.problem,
                IS_WHOLE: is_whole,
            }
            if self._written.get(outlet.name) != status:
                self._written[outlet.name] = status
                write_status(self._store, outlet.name, status)


@dataclass(frozen=True, slots=True)
class NoticeReporter:
    """See protocols.plugins.Reporter."""

    notifier: Notifier
    session: Callable[[], Session]

    name = "notifications"

    def report(self, issue: Issue, repeated: int) -> None:  # noqa: ARG002 - the limit counts by time
        self.notifier.hear(issue, self.session())

    def recall(self, stall: Stall) -> None:
        self.notifier.hear_again(stall, self.session())

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """Does nothing: the notifier may serve other programs."""


FOLDER = "notifications"
IS_WHOLE = "is_whole"
"""Key of the status: its writer has ended, and had sent or given up all that it was to send."""
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_STATUS_MAX = 4_096


def status_path(store: Path, way: str, *, make: bool = False) -> Path:
    """The file of one way. With `make`, OSError where its folder cannot be made."""
    folder = Path(below(str(store), FOLDER, make=make, theirs=not make))
    if make:
        folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
    return folder / f"{way}.json"


def write_status(store: Path, way: str, status: dict[str, Any]) -> None:
    """Replaces the status in one step; on a full disk the old one stays."""
    with suppress(OSError):
        path = status_path(store, way, make=True)
        aside = path.with_suffix(f".{os.getpid()}.new")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(status, file)
        aside.replace(path)


def read_status(store: Path, way: str) -> dict[str, Any] | None:
    """What was written last; None where nothing was, or it cannot be read."""
    try:
        with os.fdopen(open_file(str(status_path(store, way))), "rb") as file:
            status = json.loads(file.read(_STATUS_MAX))
    except (OSError, ValueError):
        return None
    return status if isinstance(status, dict) else None


NO_LIBRARY = "desktop notifications need desktop-notifier: pip install 'loopcanary[notify]'"


class UnusableWayError(Exception):
    """A way that was asked for cannot be used; its text is for people."""


def receiver_of(way: str, config: Config) -> Receiver:
    """The receiver of `desktop` or `webhook`. UnusableWayError."""
    if way == "desktop":
        from loopcanary.notifications.desktop import Desktop

        problem = no_desktop()
        if problem is not None:
            raise UnusableWayError(problem)
        return Desktop()
    from loopcanary.notifications.webhook import AddressError, Webhook, read_address

    try:
        return Webhook(read_address(os.environ, config.webhook_file)[0])
    except AddressError as error:
        raise UnusableWayError(f"webhook: {error}") from None


def no_desktop(environ: Mapping[str, str] = os.environ) -> str | None:
    """Why there can be no desktop notifications here; None where there can, as far as one sees from here."""
    if importlib.util.find_spec("desktop_notifier") is None:
        return NO_LIBRARY
    if sys.platform.startswith("linux") and not _has_session_bus(environ):
        return "there is no desktop session here (no D-Bus session bus)"
    return None


def _has_session_bus(environ: Mapping[str, str]) -> bool:
    if environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return True
    runtime = environ.get("XDG_RUNTIME_DIR")
    return bool(runtime) and Path(str(runtime), "bus").exists()
