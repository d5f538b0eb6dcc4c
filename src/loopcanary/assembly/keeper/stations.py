"""What the stalls of one program pass through in its keeper: the pipeline of the engine, by the program's own
settings, paths and stderr."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcanary.assembly.beside import completed_hang, start_in
from loopcanary.assembly.keeper.noted import NotedTraces, are_there, open_notes
from loopcanary.assembly.keeper.plugins import Plugins
from loopcanary.assembly.looks import survey_of
from loopcanary.assembly.roots_sources import RootsSources, is_roots
from loopcanary.assembly.store import config_of, marked, owned_by, paths_of, slow_methods, with_calls
from loopcanary.engine import Boundary
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Config, Issue, Session, Stall, StallEvidence, StallState
from loopcanary.model.config import OFF
from loopcanary.model.search import IssueQuery
from loopcanary.pipeline.guards import DebuggerGuard, StormGuard, tracing_process
from loopcanary.pipeline.pipeline import Pipeline, Stations
from loopcanary.protocols.plugins import Interceptor, Reporter
from loopcanary.registry import REGISTRY, REPORTERS
from loopcanary.reporters.far_terminal import FarTerminal
from loopcanary.source_text import FileSources, SourceReader
from loopcanary.store.recovery.forensics import session_of
from loopcanary.whose_folder import NOWHERE

if TYPE_CHECKING:
    from loopcanary.assembly.beside import SlowCallIssues
    from loopcanary.assembly.looks import FoundDeadlocks
    from loopcanary.flight import FlightFile, FlightHeader
    from loopcanary.model import LagIssue, TraceFigures
    from loopcanary.model.session import TaskSurvey
    from loopcanary.notifications.notifier import Notifier
    from loopcanary.store import Store

STDERR = "stderr"
"""Key of the facts: what the program's stderr is, and may be used for."""
_RECALLED_MAX = 1_000
_IS_ROOT = os.getuid() == 0
_USUAL = Config()
_NOTHING_ELSEWHERE = {
    "log_file": None,
    "webhook_file": None,
    "notify": (),
    "retention": _USUAL.retention,
}
_UNSTORED_MAX = 256
_OUR_FILES = FileSources()
"""What is read of them is kept for all programs that have this process's root."""


class KeptSink:
    """See protocols.stores.Sink. Knows what it could not store. The store is shared, and closed by others."""

    def __init__(self, store: Store, counts: Counter[str]) -> None:
        self._store = store
        self._counts = counts
        self.unstored: dict[str, Issue] = {}
        """By id; the latest state. Stalls are bounded by a flight file's slots, others by _UNSTORED_MAX."""

    def put_session(self, session: Session) -> None:
        """StoreError."""
        self._counts["changes"] += 1
        self._store.put_session(session)

    def put_issue(self, issue: Issue) -> None:
        """StoreError: it is in `unstored`."""
        if isinstance(issue, Stall) or len(self.unstored) < _UNSTORED_MAX:
            self.unstored[issue.id] = issue
        self.put_unstored()

    def put_unstored(self) -> None:
        """StoreError."""
        self._counts["changes"] += 1
        issues = list(self.unstored.values())
        self._store.put([], issues)
        self.unstored.clear()
        self._counts["stalls"] += sum(
            isinstance(one, Stall) and one.state is StallState.ENDED for one in issues
        )

    def put_traces(self, session: str, figures: TraceFigures) -> None:
        """StoreError."""
        self._counts["changes"] += 1
        self._store.put_traces(session, figures)

    def rest(self, patience_s: float) -> bool:
        return self._store.rest(patience_s)

    def go_on(self) -> None:
        self._store.go_on()

    def close(self) -> None:
        """Other programs use the store, too."""


class KeptStations:
    """One program's. The keeper's thread; nothing is raised."""

    def __init__(
        self,
        file: FlightFile,
        facts: dict[str, Any],
        header: FlightHeader,
        pid: int | None,
        *,
        store_for: Callable[[Config], Store],
        interceptors: Sequence[Interceptor],
        plugins: Plugins,
        complain: Callable[[str], object],
        counts: Counter[str],
        notifier: Notifier,
    ) -> None:
        """What the program's stalls pass through.

        Args:
            file: The program's, open; beside it its traced calls may lie, and the notes of its start.
            facts: What the program says of itself.
            header: Of its flight file.
            pid: Its number here; None: it has none in this namespace.
            store_for: Gives the store with the retention of these settings.
            interceptors: Those of packages.
            plugins: Calls what packages bring.
            complain: Gets a line of what is wrong.
            counts: Of what was stored.
            notifier: The store's; its ways may be those of this program's settings.
        """
        self._clock = header.clock
        self._file = file
        self._has_start = False
        self._facts = facts
        self._paths = paths_of(facts)
        self._is_believed = pid is not None or not _IS_ROOT
        """False: of a program that may have changed its user since root started it, in another namespace. It
        makes root write, send, delete and read nothing."""
        told = config_of(facts)
        self._config = told if self._is_believed else told.replaced(**_NOTHING_ELSEWHERE)
        self.session = session_of(facts, header)
        who = f"{self.session.name} (pid {self.session.pid})"
        self.screen = self._made_screen()
        self.say = partial(self._say, who, complain)
        """A line of what is wrong, with its end."""
        self._boundary = Boundary(self.say)
        self._store = store_for(self._config)
        self._sink = KeptSink(self._store, counts)
        self._plugins = plugins
        self._reporters = [*self._made_reporters()]
        if self._is_believed:
            notifier.ask(self._config, lambda line: self.say(f"loopcanary: {line}\n"))
            self._reporters.append(notifier.reporter(lambda: self.session))
        self._pid = pid
        self.sources: SourceReader = FileSources(NOWHERE)
        """What is quoted of the program."""
        if self._is_believed:
            self.sources = _sources(pid)
        if _IS_ROOT and pid is not None:
            self.sources = RootsSources(self.sources, lambda: self._is_roots(pid), self._store.folder)
        self._pipeline = Pipeline(self._stations(interceptors), self._boundary, time.monotonic_ns)
        self._noted: NotedTraces | None = None
        self._owes_figures = False
        """They could not be stored."""
        self._told_before: dict[str, int] = {}
        """By id, how long stalls had lasted when an earlier keeper reported them while they went on."""
        with self._boundary("store"):
            self._recall()

    def _say(self, who: str, complain: Callable[[str], object], line: str) -> None:
        """To those who look after the keeper, and to those who run the program."""
        complain(f"{who}: {line.rstrip()}")
        if self.screen is not None and self._config.console != OFF:
            self.screen.write(line)

    def renew(self, facts: dict[str, Any], header: FlightHeader) -> None:
        """By what the program says of itself now: it knows its paths better a while after its start."""
        if facts != self._facts:
            self._facts = facts
            self._paths = paths_of(facts)
            self.session = session_of(facts, header)

    @property
    def config(self) -> Config:
        """The program's settings."""
        return self._config

    # ---- stalls -----------------------------------------------------------------------------

    def judge(self, evidence: StallEvidence) -> bool:
        """Judges, stores and tells one. False: it could not be stored, and waits for `store_again`."""
        return self._pipeline.judge(evidence)

    def read_start(self, last_ns: int | None) -> None:
        """Stores and reports the start of the program, once it is over; at its end in any case."""
        if self._has_start:
            return
        start = None
        with self._boundary("startup"):
            start = start_in(self._file, self.session, self._config, last_ns=last_ns)
        if start is not None:
            self._has_start = True
            self._pipeline.store_issue(start)

    def read_slow_calls(self, known: SlowCallIssues) -> None:
        """Stores and reports calls that took too long outside of stalls, and have ended."""
        slow: Sequence[LagIssue] = ()
        with self._boundary("methods"):
            slow = known.new(self._file, self.session, self._config, owned_by(self._config, self._paths))
        for issue in slow:
            self._pipeline.store_issue(issue)

    def read_deadlocks(self, known: FoundDeadlocks) -> None:
        """Stores and reports tasks that wait for each other, unless a keeper before has."""
        found: Sequence[LagIssue] = ()
        with self._boundary("deadlocks"):
            owns = owned_by(self._config, self._paths)
            new = known.new(self._file, self.session, self._config, owns)
            found = [one for one in new if self._store.reader.issue(one.id) is None]
        for issue in found:
            self._pipeline.store_issue(issue)

    def survey(self) -> TaskSurvey | None:
        """What the program's tasks waited for last."""
        with self._boundary("deadlocks"):
            return survey_of(self._file, owned_by(self._config, self._paths))
        return None

    def told_ns(self, serial: int) -> int | None:
        """How long a stall that is not over had lasted when an earlier keeper reported it; None: no keeper
        did."""
        return self._told_before.get(f"{self.session.id}-{serial}")

    def read_traces(self, now_ns: int, *, is_last: bool = False) -> int | None:
        """Stores and reports what the program noted of frames, input and idle work. Returns when to look
        again; None: when the bell rings."""
        with self._boundary("store"):
            self._noted = self._noted or self._open_notes()
        noted = self._noted
        if noted is None:
            return None
        if noted.look(now_ns) or self._owes_figures:
            self._owes_figures = not self._store_figures()
        issues: Sequence[LagIssue] = ()
        with self._boundary("traces"):
            issues = noted.issues(None if is_last else now_ns, list(self._pipeline.recent))
        for issue in issues:
            self._pipeline.store_issue(issue)
        if is_last and not (self._owes_figures or self.has_unstored):
            noted.remove()
        return noted.due_ns()

    def _store_figures(self) -> bool:
        with self._boundary("store"):
            self._sink.put_traces(self.session.id, self._with_noted(self.session.traces))
            return True
        return False

    def _open_notes(self) -> NotedTraces | None:
        if not are_there(self._file.name):
            return None
        found = open_notes(self._file.name, self.session, self._clock, self._store)
        found.failed = partial(self._boundary.failed, keep=True)
        return found

    def _with_noted(self, traces: TraceFigures) -> TraceFigures:
        """With what a program notes of input in its facts."""
        if self._noted is None:
            return traces
        noted = self._noted.figures()
        return replace(noted, input=(*noted.input, *traces.input))

    @property
    def has_unstored(self) -> bool:
        return bool(self._sink.unstored)

    def store_again(self) -> bool:
        """Whether all is stored now."""
        with self._boundary("store"):
            self._sink.put_unstored()
            return True
        return False

    def close(self, session: Session) -> bool:
        """The program has ended: the session is stored and reported. False if it could not be stored."""
        session = replace(
            session,
            statistics=self._statistics(dict(session.statistics)),
            traces=self._with_noted(session.traces),
        )
        is_stored = self._pipeline.store_session(session)
        self._pipeline.close(session)
        return is_stored

    def _statistics(self, native: dict[str, int]) -> dict[str, int]:
        if self._noted is not None and self._noted.lost:
            native = {**native, "trace_notes_lost": self._noted.lost}
        return {**native, **self._pipeline.statistics(), **self._boundary.counts()}

    def _recall(self) -> None:
        """What a keeper before took from this program counts as if this one had."""
        query = IssueQuery(session=self.session.id).stalls
        for issue in reversed(self._store.reader.issues(query, _RECALLED_MAX)):
            if not isinstance(issue, Stall):
                continue
            for reporter in self._reporters:
                recall = getattr(reporter, "recall", None)
                with self._boundary.until_failure(f"reporter {reporter.name}") as is_on:
                    if is_on and recall is not None:
                        recall(issue)
            if issue.state is StallState.ONGOING:
                self._told_before[issue.id] = issue.duration_ns
            else:
                self._pipeline.recall(issue)

    # ---- what they pass ---------------------------------------------------------------------

    def _stations(self, interceptors: Sequence[Interceptor]) -> Stations:
        config = self._config
        return Stations(
            config=config,
            clock=self._clock,
            session=lambda: self.session,
            paths=lambda: self._paths,
            sources=self.sources,
            add_calls=self._with_calls,
            interceptors=interceptors,
            sink=self._sink,
            reporters=self._reporters,
            debugger=DebuggerGuard(partial(_debugger, self._pid)),
            storm=None,
            derived=lambda stall: slow_methods(stall, self.session, config),
            completed_hang=completed_hang,
            issue_storm=StormGuard(config.stalls_per_minute, time.monotonic_ns()),
        )

    def _with_calls(self, stall: Stall, evidence: StallEvidence) -> Stall:
        return marked(with_calls(stall, evidence, self._file, self._config, self._paths), self._file)

    def _is_roots(self, pid: int) -> bool:
        return is_roots(pid, self._file.name)

    def _made_screen(self) -> FarTerminal | None:
        """Where the program's stderr is a person's."""
        stderr = self._facts.get(STDERR)
        if not isinstance(stderr, dict) or stderr.get("speaks") is not True:
            return None
        return FarTerminal(stderr, self._paths.working)

    def _made_reporters(self) -> Iterator[Reporter]:
        run = _KeptRun(
            config=self._config,
            session=self.session,
            folder=Path(self._paths.working),
            far_screen=self.screen,
            stderr=self._facts.get(STDERR),
        )
        for one, make in REGISTRY.loaded(REPORTERS):
            part = f"reporter {one.name}"
            making = make if one.is_built_in else partial(self._plugins.call, part, make)
            reporter = None
            with self._boundary.until_failure(part) as is_on:
                if is_on:
                    reporter = making(run)
            if reporter is not None:
                yield reporter if one.is_built_in else self._plugins.reporter(reporter)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptRun:
    """See protocols.plugins.WatchedRun."""

    config: Config
    session: Session
    folder: Path
    far_screen: FarTerminal | None
    stderr: Any
    """Of the facts, where there is a screen: a dict."""

    @property
    def process(self) -> str:
        is_child = self.far_screen is not None and self.stderr.get("child") is True
        return f"{self.session.name} (pid {self.session.pid})" if is_child else ""

    @property
    def is_by_hand(self) -> bool:
        return self.far_screen is not None and self.stderr.get("by_hand") is True

    def screen(self) -> FarTerminal | None:
        return self.far_screen

    def exit_changer(self) -> None:
        """A program sets its exit status itself."""


def _debugger(pid: int | None) -> str | None:
    """As far as it shows from outside; the samples show the rest."""
    try:
        return None if pid is None else tracing_process(str(pid))
    except (OSError, ValueError):
        return None


def _sources(pid: int | None) -> FileSources:
    """Where the program's files are, if it has another root than we have."""
    if pid is None:
        return _OUR_FILES
    root = f"/proc/{pid}/root"
    try:
        is_ours = Path(root).samefile("/")
    except OSError:  # it may not be looked at, or is gone
        is_ours = True
    return _OUR_FILES if is_ours else FileSources(root)
