"""What dead processes left behind: their flight files become sessions and stalls of the store.

How a flight file is read and judged is not this part's business: `Forensics` brings it. Two recoveries at
once are safe: a file is renamed before it is taken, and what was put twice is stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from loopcanary.model import Session, SessionEnd, Stall, StallEvidence, StallState
from loopcanary.model.search import IssueQuery
from loopcanary.store.recovery.forensics import Forensics, Header, Remains, session_of
from loopcanary.store.sqlite.files import set_aside
from loopcanary.store.store import Store

_R = TypeVar("_R", bound=Remains)

FLIGHT_FOLDER = "flight"
SAVED = ".saved"
"""Suffix of the copy on disk that a native engine makes of a hang, beside the link to its file in memory."""
_CLAIMED = ".claimed"
_UNREADABLE = "unreadable"
_FRESH_S = 60
"""A file this young may still be in the making, and a claim this young still at work."""
_LOST_S = 30 * 86_400


@dataclass(slots=True, kw_only=True)
class Recovery:
    """What was found."""

    sessions: list[Session] = field(default_factory=list)
    """Of dead processes; they are in the store now."""
    stalls: list[Stall] = field(default_factory=list)
    """Of dead processes; they are in the store now."""
    running: list[Session] = field(default_factory=list)
    """Of processes that run, or of which it cannot be said."""
    ongoing: list[Stall] = field(default_factory=list)
    """Stalls that go on now."""
    notices: list[str] = field(default_factory=list)
    """Lines for people."""


def recover(
    store: Store,
    forensics: Forensics[_R],
    *,
    living: bool = True,
    now_s: Callable[[], float] = time.time,
) -> Recovery:
    """Takes in the flight files of the store's folder. StoreError where the store fails.

    A file whose process is dead is stored and removed; one of a running process is only read; one that
    cannot be read is set aside. `living`: whether to look at what running processes do.
    """
    visit = _Visit(store, forensics, living, now_s())
    for path in _flight_files(store.folder / FLIGHT_FOLDER):
        visit.take(path)
    return visit.found


def settle(
    store: Store, recovery: Recovery, *, host: str, is_gone: Callable[[Session], bool]
) -> list[Session]:
    """Ends the stored sessions of this host that run no more and left no flight file. StoreError.

    A reboot loses files in memory, the portable engine writes none. `is_gone`: True only for a session
    whose process certainly runs no more.
    """
    running = {session.id for session in recovery.running}
    known = store.maintenance.running_sessions(host)
    lost = [session for session in known if session.id not in running and is_gone(session)]
    for session in lost:
        unfinished = store.maintenance.ongoing_stalls(session.id)
        ended_wall_ns = max(_ends(store, session.id), default=session.started_wall_ns)
        ended = replace(session, end=SessionEnd.KILLED, ended_wall_ns=ended_wall_ns)
        store.put([ended], [replace(stall, state=StallState.KILLED) for stall in unfinished])
    return lost


def _ends(store: Store, session: str) -> Iterator[int]:
    """When each stored stall of a session was over."""
    for mark in store.reader.marks(IssueQuery(session=session).stalls):
        if mark.session == session:
            yield mark.began_wall_ns + mark.duration_ns


class _Visit(Generic[_R]):
    """One pass over the flight folder."""

    def __init__(self, store: Store, forensics: Forensics[_R], living: bool, now_s: float) -> None:
        self.found = Recovery()
        self._store = store
        self._forensics = forensics
        self._living = living
        self._now_s = now_s

    def take(self, path: Path) -> None:
        target = _target(path)
        if not target.exists():
            # Its memory is another container's, or was lost with a reboot: not ours to judge for a while.
            if not self._is_younger(path, _LOST_S):
                with suppress(OSError):
                    path.unlink()
            return
        if path.suffix == SAVED and path.with_suffix(".flight").exists():
            return  # the file in memory tells more, and is dealt with by itself
        if path.suffix == _CLAIMED and self._is_younger(path, _FRESH_S):
            return
        try:
            remains = self._forensics.open(target)
        except self._forensics.unreadable as error:
            if not self._is_younger(target, _FRESH_S):
                self._set_aside(path, error)
            return
        try:
            self._deal_with(path, target, remains)
        except self._forensics.unreadable as error:
            self._set_aside(path, error)
        finally:
            remains.close()

    def _deal_with(self, path: Path, target: Path, remains: _R) -> None:
        if self._forensics.is_dead(remains):
            if claim := _claim(path):
                self._bury(claim, target, remains)
        elif self._living:
            self._look(remains)

    def _look(self, remains: _R) -> None:
        """Reads what a running process does now."""
        session = self._session(remains, time.monotonic_ns())
        clock = remains.header.clock
        self.found.running.append(session)
        for _, evidence in remains.stalls():
            if evidence.end_ns is None:
                stall = self._forensics.judge(evidence, session, clock, StallState.ONGOING)
                self.found.ongoing.append(stall)

    def _bury(self, claim: Path, target: Path, remains: _R) -> None:
        """Stores what a dead process left, then removes it; after a failure it is there for the next one."""
        try:
            session, stalls = self._post_mortem(remains)
            self._store.put([session], stalls)
        except BaseException:
            with suppress(OSError):
                claim.rename(claim.with_suffix(""))
            raise
        self.found.sessions.append(session)
        self.found.stalls += stalls
        for leftover in (claim, target, *_companions(claim)):
            with suppress(OSError):
                leftover.unlink()

    def _post_mortem(self, remains: _R) -> tuple[Session, list[Stall]]:
        evidence = [*(found for _, found in remains.stalls()), *remains.unslotted_stalls()]
        header = remains.header
        last_ns = _last_sign_ns(header, evidence)
        session = replace(
            self._session(remains, last_ns),
            ended_wall_ns=header.clock.to_wall_ns(last_ns),
            end=SessionEnd.KILLED if header.ended_ns is None else SessionEnd.EXIT,
        )
        return session, [
            self._forensics.judge(found, session, header.clock, _final_state(found)) for found in evidence
        ]

    def _session(self, remains: _R, now_ns: int) -> Session:
        return replace(
            session_of(remains.facts(), remains.header),
            end=SessionEnd.RUNNING,
            ended_wall_ns=None,
            loops=self._forensics.health(remains.lanes(), now_ns),
            statistics=dict(remains.counters()),
        )

    def _is_younger(self, path: Path, age_s: float) -> bool:
        """True for a file that was made, written or renamed since then."""
        try:
            return self._now_s - path.lstat().st_ctime < age_s
        except OSError:
            return True

    def _set_aside(self, path: Path, error: Exception) -> None:
        try:
            target = set_aside(path, _UNREADABLE)
        except OSError:
            return  # another recovery was faster, or the folder belongs to another user
        self.found.notices.append(f"{error}; it was set aside as {target.name}")


def _flight_files(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in paths if f".{_UNREADABLE}-" not in path.name]


def _target(path: Path) -> Path:
    """The file itself: the engine keeps it in memory where it can, and a link to it here.

    In one step, since another recovery may take the link at any moment (`Path.resolve` looks twice).
    """
    try:
        return path.parent / path.readlink()
    except OSError:
        return path


def _companions(claim: Path) -> list[Path]:
    """What else the same session may have left: the copy on disk, the link to a file that is gone."""
    session = claim.name.partition(".")[0]
    return [claim.with_name(session + suffix) for suffix in (SAVED, ".flight")]


def _claim(path: Path) -> Path | None:
    """The file under a name that says it is taken; None where another recovery was faster."""
    if path.suffix == _CLAIMED:
        # Left by a recovery that did not live to its end. Should it still work: taking it twice does no harm.
        return path
    claim = path.with_name(path.name + _CLAIMED)
    try:
        path.rename(claim)
    except OSError:
        return None
    return claim


def _final_state(evidence: StallEvidence) -> StallState:
    return StallState.KILLED if evidence.end_ns is None else StallState.ENDED


def _last_sign_ns(header: Header, evidence: Iterable[StallEvidence]) -> int:
    """When the process was last seen alive; an idle one may have lived on for long."""
    if header.ended_ns is not None:
        return header.ended_ns
    signs = [found.last_look_ns if found.end_ns is None else found.end_ns for found in evidence]
    return max([header.started_ns, header.heartbeat_ns, *signs])
