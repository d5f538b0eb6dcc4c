"""A living program as the keeper serves it: stalls out of its flight file, texts into it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcanary import diagnosis, flight
from loopcanary import keeper as place
from loopcanary.assembly import native_module
from loopcanary.assembly.beside import SlowCallIssues
from loopcanary.assembly.keeper import noted
from loopcanary.assembly.keeper.deaths import Death
from loopcanary.assembly.kept import COUNTS
from loopcanary.assembly.looks import FoundDeadlocks
from loopcanary.assembly.store import Autopsy
from loopcanary.flight.format import ProcessState, SlotState, TakenBy
from loopcanary.keeper.exits import has_our_rights
from loopcanary.keeper.hangs import Hangs
from loopcanary.keeper.kept_store import Backoff
from loopcanary.model import Session, SessionEnd
from loopcanary.store.recovery.forensics import credible, credible_lane, ended_by

if TYPE_CHECKING:
    from loopcanary.assembly.keeper.stations import KeptStations
    from loopcanary.flight.glance import SlotMark

KEEPER = "keeper"
"""Key of the facts: which keeper serves this program (keeper.key)."""
_KEY = place.key()
_IS_ROOT = os.getuid() == 0
_MS = 1_000_000
_S = 1_000 * _MS
_FACTS_AGAIN_NS, _FACTS_BY_NS = 50 * _MS, 2 * _S
"""A program writes its facts at its start."""
_TEXT_FIRST_NS, _TEXT_MOST_NS = 2 * _MS, 200 * _MS
"""Until the next look whether the program has written the text before."""
_STORE_FIRST_NS, _STORE_MOST_NS = _S, 60 * _S
"""Between tries to store what could not be stored: a full disk may have room later."""
_LAST_TEXTS_NS = 2 * _S
"""From its end on, a program's texts wait for this time at most; it waits for them itself half of that."""


StationsMaker = Callable[[flight.FlightFile, dict[str, Any], flight.FlightHeader, int | None], "KeptStations"]
"""Makes what a program's stalls pass through, by its facts. Raises nothing."""


class FlightLife:
    """See keeper.kept_store.WatchedLife. One that judges its stalls itself is only seen to live."""

    def __init__(
        self, file: flight.FlightFile, make_stations: StationsMaker, remove: Callable[[], object]
    ) -> None:
        """`remove`: removes the file and its names."""
        self._file = file
        self._glances = file.glances()
        self._autopsy = Autopsy()
        self._make_stations = make_stations
        self._remove = remove
        self._stations: KeptStations | None = None
        self._page: Any = None
        self._hangs = Hangs()
        self._slow_calls = SlowCallIssues()
        self._deadlocks = FoundDeadlocks()
        self._judged: dict[int, SlotMark] = {}
        """Ended stalls, by serial, that passed the pipeline and are not stored yet."""
        self._tries = Backoff(_STORE_FIRST_NS, _STORE_MOST_NS)
        self._ended_ns: int | None = None
        """When the end of the process was stored."""
        self._text_wait_ns = _TEXT_FIRST_NS
        header = file.header
        is_there = flight.liveness(header) is flight.Liveness.RUNNING and _may_be_of(header.pid, file.name)
        self.pid = header.pid if is_there else None
        self.death = None if self.pid is None else Death(self.pid, header.parent_pid)

    @property
    def has_more(self) -> bool:
        """The end is stored, and not all texts were put."""
        return self._ended_ns is not None and self._page is not None

    def is_over(self) -> bool:
        return self._autopsy.is_dead(self._file)

    def look(self, now_ns: int) -> int | None:
        if self._ended_ns is not None:
            return self._say_last(now_ns)
        header = (
            self._file.header
        )  # before the slots: they are final where it says that the process has ended
        if self._glances.is_closed():
            return None
        if header.taken_by is TakenBy.DRAIN:
            return self._finish_served(now_ns)
        try:
            return self._serve(header, now_ns)
        except _NotOursError:
            self._let_go()
            return None

    def _serve(self, header: flight.FlightHeader, now_ns: int) -> int | None:
        if self._has_given_up_rights():
            raise _NotOursError
        if self._page is None:
            if not self._file.facts() and now_ns - header.started_ns < _FACTS_BY_NS:
                return now_ns + _FACTS_AGAIN_NS
            if not self._opens_page():
                return None
            if _IS_ROOT:
                self._renewed(header)  # while the program can be asked for its user
        self._page.beat(now_ns)
        due_ns = self._read_slots(header, now_ns, tells_hangs=header.state is ProcessState.RUNNING)
        if header.state is ProcessState.ENDED:
            self._end(header, now_ns)
            return self._say_last(now_ns)
        self._read_beside_stalls(header)
        traces_ns = self._read_traces(header, now_ns)
        text_ns = self._put_texts(now_ns)
        return _soonest(due_ns, traces_ns, text_ns)

    def _finish_served(self, now_ns: int) -> int | None:
        """The program has begun to judge: stores and shows what was judged before. When to look again."""
        if self._page is None or self._stations is None or self._has_given_up_rights():
            return None
        return _soonest(self._store_again(now_ns), self._put_texts(now_ns))

    def _has_given_up_rights(self) -> bool:
        """Whether the program lacks the user or a capability of this process: then it is served no more.

        It still stores to the file. A change is for good: what was read before the answer was no was stored
        by a program with these rights.
        """
        return self.pid is not None and has_our_rights(self.pid) is False

    def _let_go(self) -> None:
        if self._page is not None:
            self._page.close()
            self._page = None

    def finish(self, now_ns: int) -> None:
        if self.pid is not None:
            self._finish(now_ns)
            return
        # It was dead before we came: our status does not keep commands from taking it in.
        with flight.hold_lock(Path(self._file.name)) as is_ours:
            if is_ours:
                self._finish(now_ns)

    def _finish(self, now_ns: int) -> None:
        header = self._file.header
        if self._ended_ns is not None or header.taken_by is not TakenBy.KEEPER or self._glances.is_closed():
            return
        if _IS_ROOT and self._stations is None:
            return  # it may have changed its user, and then its facts: a recovery takes it in
        # It may have begun and ended before this keeper came: its reporters still get it.
        if self._page is None and not self._opens_page():
            return
        self._read_slots(header, now_ns, tells_hangs=False)
        if header.state is not ProcessState.ENDED:
            if self._glances.marks():
                self._renewed(header)  # by its settings is notified what it was killed in
            self._read_beside_stalls(header)
            self._read_traces(header, now_ns, is_last=True)
        else:
            self._end(header, now_ns)
            # It may live, and wait: a process that gives up its file counts as dead.
            self._say_last(now_ns)

    def _opens_page(self) -> bool:
        """False: it is not ours."""
        if self._is_ours():
            self._page = native_module().open_keeper(self._file.name)
        return self._page is not None

    def _is_ours(self) -> bool:
        """False: it is the program of a keeper of another version or environment."""
        return bool(self._file.facts().get(KEEPER, _KEY) == _KEY)

    def close(self) -> None:
        self._let_go()
        self._file.close()

    # ---- stalls -----------------------------------------------------------------------------

    def _read_slots(self, header: flight.FlightHeader, now_ns: int, *, tells_hangs: bool) -> int | None:
        """Has ended stalls judged, and hangs told. Returns when to look again."""
        marks = self._glances.marks()
        hangs_ns = self._tell_hangs(header, marks, now_ns) if tells_hangs else None
        ended = [mark for mark in marks if mark.state is SlotState.ENDED and mark.serial not in self._judged]
        if ended:
            stations = self._renewed(header)
            for mark in ended:
                self._judge_ended(stations, header, mark)
            if tells_hangs:
                stations.read_start(None)
        return _soonest(hangs_ns, self._store_again(now_ns))

    def _tell_hangs(self, header: flight.FlightHeader, marks: Sequence[SlotMark], now_ns: int) -> int | None:
        self._hangs.forget_all_but({mark.serial for mark in marks})
        dues: list[int | None] = []
        for mark in marks:
            if mark.state is SlotState.ENDED:
                continue
            if self._hangs.is_due(mark.serial, mark.begin_ns, now_ns):
                self._tell_hang(self._renewed(header), mark, now_ns)
            dues.append(self._hangs.due_ns(mark.serial, mark.begin_ns, now_ns))
        return _soonest(*dues)

    def _tell_hang(self, stations: KeptStations, mark: SlotMark, now_ns: int) -> None:
        evidence = self._file.slot_evidence(mark.index, hangs=True)
        if evidence is None or evidence.serial != mark.serial or evidence.end_ns is not None:
            return
        if self.death is not None:
            self.death.look()
        if not self._hangs.knows(mark.serial):
            told_ns = stations.told_ns(mark.serial)
            if told_ns is not None and not self._hangs.tell(mark.serial, told_ns):
                return
        if self._hangs.tell(mark.serial, now_ns - mark.begin_ns):
            # It was in it when we looked, which is later than the watchdog did.
            stations.judge(replace(evidence, last_look_ns=max(evidence.last_look_ns, now_ns)))
            self._page.tell(mark.index, mark.serial)

    def _judge_ended(self, stations: KeptStations, header: flight.FlightHeader, mark: SlotMark) -> None:
        evidence = self._file.slot_evidence(mark.index, hangs=True)
        if evidence is None or evidence.serial != mark.serial:
            return  # it has changed meanwhile, or lies
        believed = credible(header, evidence)
        if believed is None or stations.judge(believed):
            self._free(mark)
        else:
            self._judged[mark.serial] = mark

    def _store_again(self, now_ns: int) -> int | None:
        """What could not be stored before. When to try again; None: all is stored."""
        if self._stations is None or not self._stations.has_unstored:
            return None
        if self._tries.holds(now_ns):
            return self._tries.until_ns
        if not self._stations.store_again():
            self._tries.fail(now_ns)
            return self._tries.until_ns
        self._tries.succeed()
        for mark in self._judged.values():
            self._free(mark)
        self._judged.clear()
        return None

    def _read_beside_stalls(self, header: flight.FlightHeader) -> None:
        if self._deadlocks.are_there(self._file):
            self._renewed(header).read_deadlocks(self._deadlocks)
        if self._slow_calls.are_there(self._file):
            self._renewed(header).read_slow_calls(self._slow_calls)

    def _read_traces(self, header: flight.FlightHeader, now_ns: int, *, is_last: bool = False) -> int | None:
        """Frames, input and idle work. When to look again."""
        if self._stations is None and not noted.are_there(self._file.name):
            return None
        return self._renewed(header).read_traces(now_ns, is_last=is_last)

    def _free(self, mark: SlotMark) -> None:
        self._page.take(mark.index, mark.serial)

    def _renewed(self, header: flight.FlightHeader) -> KeptStations:
        """_NotOursError."""
        facts = self._file.facts()
        if self._has_given_up_rights():
            raise _NotOursError
        if self._stations is None:
            self._stations = self._make_stations(self._file, facts, header, self.pid)
            if self.death is not None:
                self.death.exit_when_hung_ns = self._stations.config.exit_when_hung_ns
                self.death.sources = self._stations.sources if _IS_ROOT else None
        self._stations.renew(facts, header)
        return self._stations

    # ---- the end ----------------------------------------------------------------------------

    def _end(self, header: flight.FlightHeader, now_ns: int) -> None:
        """Stores what is left, and the session. What cannot be stored stays in the file."""
        stations = self._renewed(header)
        ended_ns = header.ended_ns or now_ns
        left = [*(found for _, found in self._file.stalls(hangs=True)), *self._file.unslotted_stalls()]
        for evidence in left:
            believed = credible(header, evidence)
            if believed is not None and believed.serial not in self._judged:
                stations.judge(ended_by(believed, ended_ns, by_exit=header.by_exit))
        self._read_beside_stalls(header)
        self._read_traces(header, now_ns, is_last=True)
        stations.read_start(ended_ns)
        is_whole = self._store_again(now_ns) is None
        session = replace(self._session(stations.session, header, ended_ns), survey=stations.survey())
        is_whole &= stations.close(session)
        self._ended_ns = now_ns
        if is_whole:
            self._remove()

    def _session(self, session: Session, header: flight.FlightHeader, ended_ns: int) -> Session:
        now_wall_ns = time.time_ns()
        lanes = [credible_lane(header, lane, now_wall_ns) for lane in self._file.lanes()]
        counted = self._file.facts().get(COUNTS)
        counts = counted.items() if isinstance(counted, dict) else ()
        return replace(
            session,
            ended_wall_ns=header.clock.to_wall_ns(ended_ns),
            end=SessionEnd.EXIT,
            loops=diagnosis.process_health(lanes, ended_ns),
            statistics=self._file.counters() | {name: one for name, one in counts if type(one) is int},
        )

    # ---- texts ------------------------------------------------------------------------------

    def _put_texts(self, now_ns: int) -> int | None:
        """Puts the next text, if the one before is written. When to try again; None: nothing waits."""
        screen = None if self._stations is None else self._stations.screen
        while screen is not None and screen.first is not None:
            if self._has_given_up_rights():
                return None  # the text may quote what the program's new user may not read
            if not self._page.say(screen.first):
                self._text_wait_ns = min(2 * self._text_wait_ns, _TEXT_MOST_NS)
                return now_ns + self._text_wait_ns
            screen.shown()
            self._text_wait_ns = _TEXT_FIRST_NS
        return None

    def _say_last(self, now_ns: int) -> int | None:
        if self._page is None or self._ended_ns is None:
            return None
        due_ns = None if now_ns - self._ended_ns > _LAST_TEXTS_NS else self._put_texts(now_ns)
        if due_ns is None:
            self._page.set_closed()
            self._page.close()
            self._page = None
        return due_ns


class _NotOursError(Exception):
    """The program has given up the rights that this process has."""


def _may_be_of(pid: int, file: str) -> bool:
    """Whether the file may be this process's, as the file says. Where another user could have written that,
    in a program that root has started, only the writer of the file is believed."""
    return not _IS_ROOT or (pid != os.getpid() and flight.stores_to(pid, file))


def _soonest(*dues: int | None) -> int | None:
    return min((due for due in dues if due is not None), default=None)
