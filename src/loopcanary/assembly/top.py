"""All watched processes of the user as they are now, from their flight files; for `loopcanary top`.

The processes are asked nothing, and nothing is written: a reader of flight files only reads. Files stay open
between two readings, so that the last state is known when a process has ended and removed its file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Self

from loopcanary import diagnosis, flight
from loopcanary.assembly.store import STORE, config_of, host_name, paths_of
from loopcanary.engine.flight_place import SHARED_MEMORY, in_memory
from loopcanary.engine.recorder import SUFFIX
from loopcanary.flight.glance import Glances, SlotGlance
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Clock, Config, LaneTotals, LoopHealth, Session, Stall, StallState
from loopcanary.model.live import LaneReading, Life, ProcessReading
from loopcanary.store import FLIGHT_FOLDER
from loopcanary.store.recovery.forensics import session_of
from loopcanary.whose_folder import REACHED, below

_FILES_MAX = 512
_JUDGED_LIVING, _JUDGED_DEAD = 8, 4
"""Verdicts at one reading: each may read source files, and who stalls hundreds of times a second waits."""
_FACTS_EVERY_NS = 10_000_000_000
_KEPT_NS = 30_000_000_000
"""How long a process is shown whose file is gone."""
_DEAD = (Life.KILLED, Life.EXITED)
_NAMELESS_NS = 3_000_000_000
"""For how long a process that runs may take to end once its file is gone."""


def health_of(totals: LaneTotals, now_ns: int) -> LoopHealth:
    """Figures of a lane at a monotonic time."""
    return diagnosis.loop_health(totals, now_ns)


class Survey:
    """Reads all flight files that it finds, again and again. Not thread-safe; a context manager.

    No file can make it fail or wait: one that is damaged is left out, one that vanishes is shown for a while.
    """

    def __init__(self, folders: Iterable[Path] = (), shared_memory: Path = SHARED_MEMORY) -> None:
        """`folders`: flight folders of stores, for files that do not lie in shared memory."""
        self._folders = tuple(folders)
        self._shared_memory = shared_memory
        self._watched: dict[tuple[int, int], _Watched] = {}
        self._final: dict[tuple[int, int], tuple[Path, ProcessReading]] = {}
        self._gone: dict[str, tuple[int, ProcessReading]] = {}
        self._refused: dict[Path, tuple[int, int, int]] = {}
        self._own_pid = os.getpid()

    @classmethod
    def of_stores(cls, stores: Iterable[Path]) -> Self:
        """`stores`: folders that may have flight files, too."""
        return cls([Path(below(str(folder), FLIGHT_FOLDER, theirs=True)) for folder in stores])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        for watched in self._watched.values():
            watched.file.close()
        self._watched.clear()

    def read(self) -> list[ProcessReading]:
        """Every process, those that ran last first."""
        self._find()
        budget = _Budget(_JUDGED_LIVING, _JUDGED_DEAD)
        now_ns, now_wall_ns = time.monotonic_ns(), time.time_ns()
        readings = []
        # Living processes first: a dead one can wait for its verdict, and does not change meanwhile.
        for identity, watched in sorted(self._watched.items(), key=lambda item: item[1].waits is not None):
            if watched.waits is not None and not budget.dead:
                readings.append(watched.waits)
                continue
            try:
                # The name first: a process that removes it now is alive in this reading, and not in the next.
                is_there = watched.is_there()
                reading = watched.read(budget, now_wall_ns)
            except (flight.FlightError, OSError):
                self._forget(identity)
                continue
            if is_there and watched.is_final(reading):
                self._forget(identity)
                self._final[identity] = watched.path, reading
            elif is_there or not watched.is_over(reading, now_ns):
                readings.append(reading)
                watched.waits = reading if reading.life in _DEAD else None
            else:
                self._forget(identity)
                if reading.life is not Life.RUNS:
                    self._gone[reading.key] = now_ns, reading
        readings += self._finals(now_ns)
        self._gone = {key: one for key, one in self._gone.items() if now_ns - one[0] < _KEPT_NS}
        readings += [reading for _, reading in self._gone.values()]
        return sorted(readings, key=lambda one: (-one.session.started_wall_ns, one.key))

    def _finals(self, now_ns: int) -> Iterator[ProcessReading]:
        """The readings of dead processes whose files are there: nothing in them changes any more."""
        for identity, (path, reading) in list(self._final.items()):
            if not _is_at(path, identity):
                del self._final[identity]
                self._gone[reading.key] = now_ns, reading
            else:
                yield reading

    def _forget(self, identity: tuple[int, int]) -> None:
        self._watched.pop(identity).file.close()

    def _find(self) -> None:
        # The latest sessions first, should there be more than are read.
        paths = sorted(self._paths(), key=lambda path: path.name, reverse=True)
        self._refused = {path: stamp for path, stamp in self._refused.items() if path in paths}
        for path in paths:
            try:
                facts = path.stat()
            except OSError:
                continue
            identity = facts.st_dev, facts.st_ino
            if identity in self._watched or identity in self._final:
                continue
            if len(self._watched) >= _FILES_MAX:
                return
            stamp = (*identity, facts.st_size)
            if self._refused.get(path) == stamp and facts.st_size:
                continue
            with suppress(flight.FlightError, OSError):
                self._refused.pop(path, None)
                opened = _Watched.open(path, identity, self._own_pid)
                if opened is not None:
                    self._watched[identity] = opened
                continue
            # It may be in the making for a moment; what is damaged stays so.
            if time.time() - facts.st_mtime > 1:
                self._refused[path] = stamp

    def _paths(self) -> Iterator[Path]:
        yield from in_memory(self._shared_memory)
        for folder in self._folders:
            with suppress(OSError):
                names = (path for path in folder.iterdir() if path.name.endswith(SUFFIX))
                yield from (path if str(path).startswith(REACHED) else path.resolve() for path in names)


@dataclass(slots=True)
class _Budget:
    """How many verdicts are left, of processes that run and of dead ones."""

    living: int
    dead: int

    def take(self, *, runs: bool) -> bool:
        if not (self.living if runs else self.dead):
            return False
        self.living -= runs
        self.dead -= not runs
        return True


@dataclass(slots=True, kw_only=True)
class _Watched:
    """One open flight file, and what earlier readings found in it."""

    path: Path
    identity: tuple[int, int]
    file: flight.FlightFile
    glances: Glances
    is_own: bool
    key: str
    session: Session | None = None
    store: str | None = None
    config: Config = field(default_factory=Config)
    code_paths: diagnosis.CodePaths = field(default_factory=diagnosis.CodePaths)
    facts_at_ns: int = 0
    heartbeat_ns: int = -1
    was_alive: bool = False
    nameless_since_ns: int = 0
    waits: ProcessReading | None = None
    """Of a dead process whose stalls wait for their verdicts."""
    is_judged: bool = False
    """No stall waits for its verdict."""
    judged: dict[tuple[int, int], tuple[int, int, bool]] = field(default_factory=dict)
    """By lane and generation: serial, level and whether it was over, of the stall that was judged last."""
    last: dict[tuple[int, int], Stall] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, identity: tuple[int, int], own_pid: int) -> _Watched | None:
        """The file; None where another one has taken its place. FlightError, OSError."""
        file = flight.FlightFile.open(path)
        try:
            facts = path.stat()
            if (facts.st_dev, facts.st_ino) != identity:
                file.close()
                return None
            is_own = file.header.pid == own_pid
            return cls(
                path=path,
                identity=identity,
                file=file,
                glances=file.glances(),
                is_own=is_own,
                key=f"{identity[0]}-{identity[1]}",
            )
        except BaseException:
            file.close()
            raise

    def is_there(self) -> bool:
        """Whether the file still has its name."""
        return _is_at(self.path, self.identity)

    def is_final(self, reading: ProcessReading) -> bool:
        """Whether its process is dead, and every verdict given."""
        return reading.life in _DEAD and self.is_judged

    def is_over(self, reading: ProcessReading, now_ns: int) -> bool:
        """Whether nothing more will come, as the file has no name any more: its process has ended, a report
        has taken it in, or it is not watched any longer."""
        self.nameless_since_ns = self.nameless_since_ns or now_ns
        return reading.life is not Life.RUNS or now_ns - self.nameless_since_ns > _NAMELESS_NS

    def read(self, budget: _Budget, now_wall_ns: int) -> ProcessReading:
        """The process as it is now. FlightError, OSError."""
        header = self.file.header
        now_ns = time.monotonic_ns()
        self._learn(header, now_ns)
        assert self.session is not None
        life, is_near = self._life(header)
        lanes, stalls = self.glances.look()
        running = life in (Life.RUNS, Life.UNKNOWN)
        at_ns = now_ns if running else _last_sign_ns(header, lanes)
        at_wall_ns = now_wall_ns if running else header.clock.to_wall_ns(at_ns)
        self._judge(stalls, header.clock, running, budget)
        return ProcessReading(
            key=self.key,
            session=self.session,
            life=life,
            is_near=is_near,
            at_ns=at_ns,
            at_wall_ns=at_wall_ns,
            lanes=lanes,
            last=self._last_by_lane(lanes),
            store=self.store,
        )

    def _learn(self, header: flight.FlightHeader, now_ns: int) -> None:
        """Reads the facts: they may come after the header, and change a little."""
        if self.session is not None and now_ns - self.facts_at_ns < _FACTS_EVERY_NS:
            return
        facts = self.file.facts()
        if facts or self.session is None:
            self.session = replace(session_of(facts, header), pid=header.pid)
            self.store = _text(facts.get(STORE))
            self.config, self.code_paths = config_of(facts), paths_of(facts)
            # Facts that are not there yet are asked for at the next reading.
            self.facts_at_ns = now_ns if facts else 0

    def _life(self, header: flight.FlightHeader) -> tuple[Life, bool]:
        """What is known of the process, and whether its number means something here."""
        if header.ended_ns is not None:
            return Life.EXITED, False
        if self.was_alive and header.heartbeat_ns != self.heartbeat_ns:
            self.heartbeat_ns = header.heartbeat_ns
            return Life.RUNS, True
        self.heartbeat_ns = header.heartbeat_ns
        is_here = self.session is not None and self.session.host == host_name()
        alive = flight.liveness(header, same_host=is_here)
        locked = flight.holds_lock(self.path) if self.is_there() else None
        self.was_alive = False
        if alive is flight.Liveness.UNKNOWABLE:
            return {True: Life.RUNS, False: Life.KILLED, None: Life.UNKNOWN}[locked], False
        if alive is flight.Liveness.DEAD:
            return Life.KILLED, False
        # It gave up the lock (a daemon closes all descriptors), or became another program (exec).
        if locked is False and (self.is_own or flight.maps(header.pid, str(self.path)) is False):
            return Life.KILLED, False
        self.was_alive = True
        return Life.RUNS, True

    def _judge(self, stalls: Sequence[SlotGlance], clock: Clock, running: bool, budget: _Budget) -> None:
        """Judges each lane's latest stall, and again when it gets worse or ends."""
        latest: dict[tuple[int, int], SlotGlance] = {}
        for stall in stalls:
            lane = stall.lane, stall.lane_generation
            if lane not in latest or stall.serial > latest[lane].serial:
                latest[lane] = stall
        self.is_judged = True
        for lane, stall in sorted(latest.items(), key=lambda item: item[1].end_ns is not None):
            wanted = stall.serial, stall.level, stall.end_ns is not None or not running
            if self.judged.get(lane) == wanted:
                continue
            if not budget.take(runs=running):
                self.is_judged = False
                continue
            evidence = self.file.slot_evidence(stall.index, drained=True)
            if evidence is None or evidence.serial != stall.serial:
                continue
            self.judged[lane] = wanted
            state = StallState.ENDED
            if evidence.end_ns is None:
                state = StallState.ONGOING if running else StallState.KILLED
            assert self.session is not None
            self.last[lane] = diagnosis.diagnose(
                evidence, self.session, self.config, clock, state=state, paths=self.code_paths
            )

    def _last_by_lane(self, lanes: Sequence[LaneReading]) -> dict[int, Stall]:
        keys = {(one.totals.lane, one.totals.generation) for one in lanes}
        self.last = {key: stall for key, stall in self.last.items() if key in keys}
        self.judged = {key: stamp for key, stamp in self.judged.items() if key in keys}
        return {lane: stall for (lane, _), stall in self.last.items()}


def _is_at(path: Path, identity: tuple[int, int]) -> bool:
    try:
        facts = path.stat()
    except OSError:
        return False
    return (facts.st_dev, facts.st_ino) == identity


def _last_sign_ns(header: flight.FlightHeader, lanes: Sequence[LaneReading]) -> int:
    if header.ended_ns is not None:
        return header.ended_ns
    return max([header.started_ns, header.heartbeat_ns, *(lane.last_look_ns for lane in lanes)])


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
