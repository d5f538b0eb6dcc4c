"""What dead processes left behind: their flight files become sessions and stalls of the store.

How a flight file is read and judged is not this part's business: `Forensics` brings it. Two recoveries at
once are safe: a file is renamed before it is taken, and what was put twice is stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, Session, SessionEnd, Stall, StallEvidence, StallState
from loopcanary.model.search import IssueQuery
from loopcanary.store.recovery.flight_folder import CLAIMED, FLIGHT, SAVED, Entry, FlightFolder
from loopcanary.store.recovery.forensics import (
    Forensics,
    credible,
    credible_lane,
    ended_by,
    last_ns,
    latest_ns,
    session_of,
    was_end,
)
from loopcanary.store.store import Store
from loopcanary.whose_folder import below

if TYPE_CHECKING:
    from loopcanary.flight import FlightFile
    from loopcanary.flight.header import FlightHeader

FLIGHT_FOLDER = "flight"
_FRESH_S = 60
"""A file this young may still be in the making."""
_DAY_S = 86_400
_LOST_S = 30 * _DAY_S
_PATIENCE_S = 10.0
"""A keeper on a busy machine takes seconds for a program whose calls were traced."""
_AGAIN_S = 0.01


@dataclass(slots=True, kw_only=True)
class Recovery:
    """The records that a recovery found."""

    sessions: list[Session] = field(default_factory=list)
    """Sessions of dead processes; they are in the store now."""
    stalls: list[Stall] = field(default_factory=list)
    """Stalls of dead processes; they are in the store now."""
    issues: list[Issue] = field(default_factory=list)
    """Their other issues; they are in the store now."""
    running: list[Session] = field(default_factory=list)
    """Of processes that run, or of which it cannot be said."""
    ongoing: list[Stall] = field(default_factory=list)
    starts: list[Issue] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def recover(
    store: Store,
    forensics: Forensics,
    *,
    living: bool = True,
    names: Collection[str] | None = None,
    now_s: Callable[[], float] = time.time,
    patience_s: float = _PATIENCE_S,
) -> Recovery:
    """Takes in the flight files of the store's folder.

    A file whose process is dead is stored and removed; one of a running process is only read; one that
    cannot be read is set aside; another user's is left to that user, by root, too.

    Args:
        store: Whose folder it is.
        forensics: Reads a file, and says what became of its process.
        living: Whether to look at what running processes do.
        names: Of the files to deal with; None: all.
        now_s: As time.time().
        patience_s: How long to wait, with `living`, for a process that takes one in now: a keeper may have
            seen the end of a program a moment before.

    Raises:
        StoreError: The store fails.
    """
    try:
        path = below(str(store.folder), FLIGHT_FOLDER, theirs=True)
        folder = FlightFolder(Path(path), forensics.place, lender=store.lender)
    except OSError:
        return Recovery()
    with folder:
        visit = _Visit(store, forensics, folder, living, now_s())
        visit.gives_up_s = time.monotonic() + (patience_s if living else 0.0)
        for name in folder.names() if names is None else names:
            visit.take(name)
    return visit.found


def settle(
    store: Store, recovery: Recovery, *, host: str, is_gone: Callable[[Session], bool]
) -> list[Session]:
    """Ends the stored sessions of this host that run no more and left no flight file: a reboot loses files in
    memory, the portable engine leaves hangs only.

    Args:
        store: Which has them.
        recovery: What its flight files said, just now.
        host: This one's name.
        is_gone: True only for a session whose process certainly runs no more.

    Returns:
        Those that were ended.

    Raises:
        StoreError: The store fails.
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


class _Visit:
    """One pass over the flight folder."""

    def __init__(
        self, store: Store, forensics: Forensics, folder: FlightFolder, living: bool, now_s: float
    ) -> None:
        self.found = Recovery()
        self._store = store
        self._forensics = forensics
        self._folder = folder
        self._living = living
        self._now_s = now_s
        self.gives_up_s = 0.0
        """Monotonic time, in seconds, until which this pass waits for another process."""

    def take(self, name: str) -> None:
        entry = self._folder.find(name)
        if entry is None and not name.endswith(CLAIMED):
            entry = self._folder.find(name + CLAIMED)  # another process has begun to take it in
        if entry is None:
            return
        if entry.file is None:
            # Its memory is another container's, or was lost with a reboot: not ours to judge for a while.
            if entry.is_ours and self._is_past(entry.changed_s, _LOST_S):
                self._folder.remove(name)
            return
        if name.endswith(SAVED) and self._is_in_memory(name):
            return  # the file in memory has more, and is handled by itself
        try:
            remains = self._forensics.open(entry.path)
        except self._forensics.unreadable as error:
            if self._is_past(entry.file.st_ctime, _FRESH_S):
                self._set_aside(entry, error)
            return
        try:
            if remains.identity == entry.identity:
                self._deal_with(entry, remains)
        except self._forensics.unreadable as error:
            self._set_aside(entry, error)
        finally:
            remains.close()

    def _deal_with(self, entry: Entry, remains: FlightFile) -> None:
        if not self._forensics.is_dead(remains):
            if self._living:
                self._look(remains)
        elif not entry.is_ours:
            self._note(
                f"flight files of killed programs of user {entry.owner} are not stored: run the command as "
                "that user"
            )
        else:
            while not self._takes_in(entry, remains):
                if time.monotonic() >= self.gives_up_s:
                    if self._living:
                        self._note(f"{entry.path} is being stored by another process: try again later")
                    return
                time.sleep(_AGAIN_S)  # a lock that is waited for with a limit is asked for

    def _takes_in(self, entry: Entry, remains: FlightFile) -> bool:
        """False: another process does, or is about to: a keeper, which has the program's interceptors and
        messages. It may be stopped, and is not waited for without a limit."""
        is_patient = not self._living or time.monotonic() < self.gives_up_s
        if is_patient and self._forensics.is_kept(remains):
            return False
        # A claim without a lock was left by a process that did not live to its end.
        with self._forensics.hold(entry.path) as is_ours:
            if is_ours and self._folder.find(entry.name) and (claim := self._folder.claim(entry.name)):
                self._bury(claim, entry, remains)
        return is_ours

    def _look(self, remains: FlightFile) -> None:
        """Reads what a running process does now."""
        session = self._session(remains, time.monotonic_ns())
        clock = remains.header.clock
        self.found.running.append(session)
        for _, evidence in remains.stalls():
            if evidence.end_ns is None:
                stall = self._forensics.judge(evidence, session, clock, StallState.ONGOING)
                self.found.ongoing.append(stall)
        start = self._forensics.start(remains, session, None)
        if start is not None:
            self.found.starts.append(start)

    def _bury(self, claim: str, entry: Entry, remains: FlightFile) -> None:
        """Stores what a dead process left, then removes it; after a failure it is there for the next one."""
        try:
            session, judged, start = self._post_mortem(remains)
            stalls = [seen for one in judged if (seen := self._forensics.intercept(one)) is not None]
            traces, noted = self._forensics.noted(remains, session, remains.header.clock, stalls)
            found = noted if start is None else (*noted, start)
            issues = [one for one in found if self._forensics.is_wanted(one)]
            self._store.put([replace(session, traces=traces)], [*stalls, *issues])
        except BaseException:
            self._folder.give_back(claim)
            raise
        self.found.sessions.append(session)
        self.found.stalls += stalls
        self.found.issues += issues
        self._folder.remove(claim, *_companions(claim))
        entry.forget()

    def _post_mortem(self, remains: FlightFile) -> tuple[Session, list[Stall], Issue | None]:
        header = remains.header
        slots = (found for _, found in remains.stalls(faults=True))
        told = [*(found for found in slots if was_end(header, found)), *remains.unslotted_stalls()]
        evidence = [found for one in told if (found := credible(header, one)) is not None]
        last_sign_ns = _last_sign_ns(header, evidence, int(self._now_s * 1e9))
        session = replace(
            self._session(remains, last_sign_ns),
            ended_wall_ns=header.clock.to_wall_ns(last_sign_ns),
            end=SessionEnd.KILLED if header.ended_ns is None else SessionEnd.EXIT,
        )
        if header.ended_ns is not None:
            evidence = [ended_by(found, last_sign_ns, by_exit=header.by_exit) for found in evidence]
        stalls = [self._judged(remains, found, session) for found in evidence]
        if any(stall.state is StallState.CRASHED for stall in stalls):
            session = replace(session, end=SessionEnd.CRASHED)
        kept = list(filter(self._forensics.is_wanted, stalls))
        return session, kept, self._forensics.start(remains, session, last_sign_ns)

    def _judged(self, remains: FlightFile, evidence: StallEvidence, session: Session) -> Stall:
        """The judged stall of a dead process."""
        state, header = _final_state(evidence), remains.header
        if state is StallState.KILLED:
            evidence = replace(evidence, killed_by=header.killed_by(evidence.begin_ns))
            evidence = replace(evidence, fault=header.fault_of(evidence.tid, evidence.begin_ns))
            state = state if evidence.fault is None else StallState.CRASHED
        return self._forensics.judge(evidence, session, header.clock, state)

    def _session(self, remains: FlightFile, now_ns: int) -> Session:
        now_wall_ns = int(self._now_s * 1e9)
        lanes = [credible_lane(remains.header, lane, now_wall_ns) for lane in remains.lanes()]
        session = session_of(remains.facts(), remains.header)
        return replace(
            session,
            survey=self._forensics.survey(remains, session),
            end=SessionEnd.RUNNING,
            ended_wall_ns=None,
            loops=self._forensics.health(lanes, now_ns),
            statistics=dict(remains.counters()),
        )

    def _is_past(self, time_s: float, age_s: float) -> bool:
        return self._now_s - time_s >= age_s

    def _is_in_memory(self, saved: str) -> bool:
        link = self._folder.find(saved.removesuffix(SAVED) + FLIGHT)
        return link is not None and link.file is not None

    def _set_aside(self, entry: Entry, error: Exception) -> None:
        if entry.is_ours and (name := self._folder.set_aside(entry.name)):
            self._note(f"{error}; it was set aside as {name}")

    def _note(self, line: str) -> None:
        if line not in self.found.notices:
            self.found.notices.append(line)


def _companions(claim: str) -> list[str]:
    """What else the same session may have left: the copy on disk, the link to a file that is gone."""
    session = claim.partition(".")[0]
    return [session + suffix for suffix in (SAVED, FLIGHT)]


def _final_state(evidence: StallEvidence) -> StallState:
    return StallState.KILLED if evidence.end_ns is None else StallState.ENDED


def _last_sign_ns(header: FlightHeader, evidence: Iterable[StallEvidence], now_wall_ns: int) -> int:
    """When the process was last seen alive; an idle one may have lived on for long."""
    signs = [header.heartbeat_ns, *map(last_ns, evidence)] if header.ended_ns is None else [header.ended_ns]
    latest = latest_ns(header, now_wall_ns)
    possible = [sign for sign in (header.started_ns, *signs) if sign <= latest]
    return max(possible, default=header.clock.monotonic_ns)
