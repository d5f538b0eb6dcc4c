"""What happens to each stall after it was seen: guards, diagnosis, interceptors, store, reporters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from loopcanary.engine import Boundary
from loopcanary.engine.in_process.guards import DebuggerGuard, StormGuard
from loopcanary.engine.in_process.recent import Recent
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Stall, StallEvidence, StallState
from loopcanary.protocols.plugins import Interceptor, Reporter
from loopcanary.protocols.stores import Sink

if TYPE_CHECKING:  # most programs have stalls only, and do not load the other kinds
    from loopcanary.model import Issue, LagIssue

_REMEMBERED_GROUPS = 10_000


class Judge(Protocol):
    """Evidence and the stall's state in, verdict out; assembled from `diagnosis.diagnose`."""

    def __call__(self, evidence: StallEvidence, state: StallState, /) -> Stall:
        """The verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stations:
    """What a stall passes through."""

    judge: Judge
    drop_reason: Callable[[Stall], str | None]
    keep_ignored: bool
    interceptors: Sequence[Interceptor]
    sink: Sink
    reporters: Sequence[Reporter]
    debugger: DebuggerGuard
    while_debugging: bool
    storm: StormGuard | None
    """None: the native side has counted what is too much already."""
    issue_storm: StormGuard
    """Of issues of other kinds: they shall not use up what the stalls they rest on need."""
    derived: Callable[[Stall], Sequence[Issue]] = lambda _: ()
    """Issues of other kinds that a stall which is over is, too."""
    forget: Callable[[Stall], object] | None = None
    """Removes what a keeper has stored of a stall that is over, and was dropped; None: no keeper does."""
    introduce: Callable[[], object] | None = None
    """Stores who the process is, before its first issue; None: a flight file says so."""


class Pipeline:
    """Takes evidence, one stall at a time. Drain thread, and the stopping thread after it has ended."""

    def __init__(self, stations: Stations, boundary: Boundary, monotonic_ns: Callable[[], int]) -> None:
        self._stations = stations
        self._boundary = boundary
        self._monotonic_ns = monotonic_ns
        self._introduce = stations.introduce
        self._seen: Counter[str] = Counter()
        self._going_on: set[int] = set()
        """Serials of stalls that were admitted while they lasted: they count once."""
        self.recent = Recent()
        self.counts: Counter[str] = Counter()
        """What became of stalls."""
        self.issue_counts: Counter[str] = Counter()
        """What became of other issues."""

    def take(self, evidence: StallEvidence) -> bool:
        """Judges, stores and reports one stall. Raises nothing. False where it should have been stored and
        could not be: the evidence is worth keeping."""
        return self._boundary.call("pipeline", self._take, evidence, keep=True) is not False

    def _take(self, evidence: StallEvidence) -> bool:
        reason = self._suppressed(evidence)
        if reason is not None:
            self.counts[reason] += 1
            return True
        state = StallState.ONGOING if evidence.end_ns is None else StallState.ENDED
        stall = self._boundary.call("diagnosis", self._stations.judge, evidence, state, keep=True)
        if stall is None:
            self.counts["stalls_undiagnosed"] += 1
            return True
        dropped = self._stations.drop_reason(stall)
        if dropped is not None:
            self.counts["stalls_dropped_" + dropped.partition(":")[0]] += 1
            return not self._stations.keep_ignored or self._store(stall)
        is_stored = self._publish(stall)
        if state is StallState.ENDED:
            for issue in self._boundary.call("derived", self._stations.derived, stall, keep=True) or ():
                self.take_issue(issue)
        return is_stored

    def recall(self, stall: Stall) -> None:
        """Counts one that another process has stored and reported."""
        self._remember(stall)

    def take_issue(self, issue: LagIssue) -> None:
        """Stores and reports an issue that is made of more than one callback. Raises nothing."""
        self._boundary.call("pipeline", self._take_issue, issue, keep=True)

    def _take_issue(self, issue: LagIssue) -> None:
        now_ns = self._monotonic_ns()
        if not self._stations.while_debugging and self._stations.debugger.reason(now_ns):
            self.issue_counts["issues_suppressed_debugger"] += 1
        elif not self._stations.issue_storm.admits(now_ns):
            self.issue_counts["issues_suppressed_storm"] += 1
        else:
            self._publish(issue)

    def _suppressed(self, evidence: StallEvidence) -> str | None:
        now_ns = self._monotonic_ns()
        if not self._stations.while_debugging and self._stations.debugger.reason(now_ns, evidence):
            return "stalls_suppressed_debugger"
        storm = self._stations.storm
        if storm is not None and evidence.serial not in self._going_on and not storm.admits(now_ns):
            return "stalls_suppressed_storm"
        if evidence.end_ns is None:
            self._going_on.add(evidence.serial)
        else:
            self._going_on.discard(evidence.serial)
        return None

    def _publish(self, stall: Issue) -> bool:
        for interceptor in self._stations.interceptors:
            name = f"interceptor {getattr(interceptor, '__qualname__', type(interceptor).__qualname__)}"
            failed_before = name in self._boundary.reasons()
            changed = self._boundary.call(name, interceptor, stall)
            if changed is None:
                if name in self._boundary.reasons():
                    # One that fails is switched off; the issue goes on without it.
                    self.counts["interceptors_skipped" if failed_before else "interceptors_failed"] += 1
                    continue
                if isinstance(stall, Stall):
                    self.counts["stalls_dropped_interceptor"] += 1
                    if self._stations.forget is not None:
                        self._boundary.call("store", self._stations.forget, stall, keep=True)
                else:
                    self.issue_counts["issues_dropped_interceptor"] += 1
                return True
            stall = changed
        is_stored = self._store(stall)
        repeated = self._seen[stall.fingerprint]
        for reporter in self._stations.reporters if stall.is_news else ():
            self._boundary.call(f"reporter {reporter.name}", reporter.report, stall, repeated)
        if stall.state is not StallState.ONGOING:
            self.counts["stalls_at_startup"] += isinstance(stall, Stall) and stall.startup
            self._remember(stall)
        return is_stored

    def _store(self, stall: Issue) -> bool:
        return self._boundary.call("store", self._put, stall, keep=True) is not None

    def _put(self, issue: Issue) -> bool:
        if self._introduce is not None:
            self._introduce()
            self._introduce = None  # what is known at the end is stored then
        self._stations.sink.put_issue(issue)
        return True

    def _remember(self, stall: Issue) -> None:
        if isinstance(stall, Stall):
            self.recent.add(stall)
            self.counts["stalls_reported"] += 1  # last: who waits for it looks for the stall then
        else:
            self.issue_counts[f"{stall.kind.value}_reported"] += 1
        if len(self._seen) < _REMEMBERED_GROUPS or stall.fingerprint in self._seen:
            self._seen[stall.fingerprint] += 1
