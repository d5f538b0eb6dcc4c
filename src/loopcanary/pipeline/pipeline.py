"""What happens to each stall after it was seen: guards, diagnosis, interceptors, store, reporters."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from loopcanary.diagnosis import diagnose, drop_reason, find_hang, is_meant
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Clock, Config, Session, StackFrame, Stall, StallEvidence, StallState
from loopcanary.pipeline.guards import DebuggerGuard, StormGuard
from loopcanary.protocols.plugins import Interceptor, Reporter, counts_of
from loopcanary.protocols.stores import Sink

if TYPE_CHECKING:  # most programs have stalls only, and do not load the other kinds
    from loopcanary.diagnosis import CodePaths
    from loopcanary.model import Issue, LagIssue
    from loopcanary.protocols.engine import PartBoundary
    from loopcanary.source_text import SourceReader

_REMEMBERED_GROUPS = 10_000
_T = TypeVar("_T")
_STALLS_MAX = 1_000
_FRAMES_MAX = 50_000
"""Frames in stacks of their own, of all stalls together: some 400 KB. A stall of code that computes has as
many stacks as samples, hundreds."""
_COMMON_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stations:
    """What a stall passes through."""

    config: Config
    clock: Clock
    session: Callable[[], Session]
    """Gives the facts of the process, as they are now."""
    paths: Callable[[], CodePaths]
    """Says where the program's code lies."""
    sources: SourceReader
    add_calls: Callable[[Stall, StallEvidence], Stall]
    """Adds what lies beside the flight file: the calls that were traced in the stall."""
    interceptors: Sequence[Interceptor]
    sink: Sink
    reporters: Sequence[Reporter]
    debugger: DebuggerGuard
    storm: StormGuard | None
    """None: the native side has counted what is too much already."""
    issue_storm: StormGuard
    """Of issues of other kinds: they shall not use up what the stalls they rest on need."""
    derived: Callable[[Stall], Sequence[Issue]] = lambda _: ()
    """Issues of other kinds that a stall which is over is, too."""
    completed_hang: Callable[[LagIssue, Session, int], LagIssue] = lambda found, *_: found
    """Completes the issue of a program that does not start or end; its serial makes its id."""
    introduce: Callable[[], object] | None = None
    """Stores who the process is, before its first issue; None: a flight file says so."""


def ignores_kind(config: Config, issue: Issue) -> bool:
    """Whether the settings hide all issues of its kind, which is not stalls."""
    return f"kind:{issue.kind.value}" in config.ignore


class Pipeline:
    """Judges evidence, one stall at a time. One thread: a keeper's, or the drain, then the stopping one."""

    def __init__(self, stations: Stations, boundary: PartBoundary, monotonic_ns: Callable[[], int]) -> None:
        self._stations = stations
        self._boundary = boundary
        self._monotonic_ns = monotonic_ns
        self._introduce = stations.introduce
        self._seen: Counter[str] = Counter()
        self._going_on: set[int] = set()
        """Serials of stalls that were admitted while they lasted: they count once."""
        self._told_hangs: set[int] = set()
        """Likewise of programs that do not start or end, and were reported."""
        self.recent = Recent()
        self.counts: Counter[str] = Counter()
        """What became of stalls."""
        self.issue_counts: Counter[str] = Counter()
        """What became of other issues."""

    def judge(self, evidence: StallEvidence) -> bool:
        """Judges, stores and tells one stall. Raises nothing. False where it should have been stored and
        could not be: the evidence is worth keeping."""
        with self._boundary("pipeline"):
            return self._judge(evidence)
        return True

    def _judge(self, evidence: StallEvidence) -> bool:
        at = self._stations
        if evidence.hang is not None:
            self._judge_hang(evidence)
            return True
        reason = self._suppressed(evidence)
        if reason is not None:
            self.counts[reason] += 1
            return True
        state = StallState.ONGOING if evidence.end_ns is None else StallState.ENDED
        stall = self._diagnose(evidence, state)
        if stall is None:
            self.counts["stalls_undiagnosed"] += 1
            return True
        if is_meant(stall, at.paths()):
            self.counts["stalls_dropped_meant"] += 1
            return True
        dropped = drop_reason(stall, at.config, at.paths())
        if dropped is not None:
            self.counts["stalls_dropped_" + dropped.partition(":")[0]] += 1
            return at.config.delete_ignored or self._store(stall)
        is_stored = self._store_and_tell(stall)
        if state is StallState.ENDED:
            derived: Sequence[Issue] = ()
            with self._boundary("derived"):
                derived = at.derived(stall)
            for issue in derived:
                self.store_issue(issue)
        return is_stored

    def _judge_hang(self, evidence: StallEvidence) -> None:
        """Reports it once; how long it lasted is stored each time."""
        at, found = self._stations, None
        with self._boundary("diagnosis"):
            session, paths = at.session(), at.paths()
            found = find_hang(evidence, session, at.config, at.clock, sources=at.sources, paths=paths)
        if found is None:
            self.issue_counts["hangs_without_place"] += 1
            return
        issue = at.completed_hang(found, session, evidence.serial)
        if evidence.serial in self._told_hangs:
            self._store(issue)
        else:
            self.store_issue(issue)
            if issue.fingerprint in self._seen:
                self._told_hangs.add(evidence.serial)

    def _diagnose(self, evidence: StallEvidence, state: StallState) -> Stall | None:
        at = self._stations
        with self._boundary("diagnosis"):
            session, paths = at.session(), at.paths()
            stall = diagnose(
                evidence, session, at.config, at.clock, state=state, sources=at.sources, paths=paths
            )
            return at.add_calls(stall, evidence)
        return None

    def recall(self, stall: Stall) -> None:
        """Counts one that another process has stored and reported."""
        self._remember(stall)

    def store_issue(self, issue: Issue) -> None:
        """Stores and tells an issue that is made of more than one callback. Raises nothing."""
        with self._boundary("pipeline"):
            now_ns = self._monotonic_ns()
            config = self._stations.config
            if ignores_kind(config, issue):
                self.issue_counts["issues_dropped_ignore"] += 1
                if not config.delete_ignored:
                    self._store(issue)
            elif not config.while_debugging and self._stations.debugger.reason(now_ns):
                self.issue_counts["issues_suppressed_debugger"] += 1
            elif not self._stations.issue_storm.admits(now_ns):
                self.issue_counts["issues_suppressed_storm"] += 1
            else:
                self._store_and_tell(issue)

    def store_session(self, session: Session) -> bool:
        """False: it could not be stored. Raises nothing."""
        with self._boundary("store") as is_on:
            if is_on:
                self._stations.sink.put_session(session)
                return True
        return False

    def close(self, session: Session) -> None:
        """Tells the reporters that the program has ended. Raises nothing."""
        for reporter in self._stations.reporters:
            with self._boundary.until_failure(f"reporter {reporter.name}") as is_on:
                if is_on:
                    reporter.close(session, list(self.recent))

    def statistics(self) -> dict[str, int]:
        """What became of stalls and issues, with what those reporters did and dropped that count it."""
        told: dict[str, int] = {}
        for reporter in self._stations.reporters:
            counts = getattr(reporter, "counts", None)
            with self._boundary.until_failure(f"counts of {reporter.name}") as is_on:
                if is_on and counts is not None:
                    told |= counts_of(counts)
        return {**self.counts, **self.issue_counts, **told}

    def _suppressed(self, evidence: StallEvidence) -> str | None:
        now_ns = self._monotonic_ns()
        at = self._stations
        if not at.config.while_debugging and at.debugger.reason(now_ns, evidence):
            return "stalls_suppressed_debugger"
        if at.storm is not None and evidence.serial not in self._going_on and not at.storm.admits(now_ns):
            return "stalls_suppressed_storm"
        if evidence.end_ns is None:
            self._going_on.add(evidence.serial)
        else:
            self._going_on.discard(evidence.serial)
        return None

    def _store_and_tell(self, stall: Issue) -> bool:
        for interceptor in self._stations.interceptors:
            name = f"interceptor {getattr(interceptor, '__qualname__', type(interceptor).__qualname__)}"
            failed_before = name in self._boundary.reasons()
            changed = None
            with self._boundary.until_failure(name) as is_on:
                if is_on:
                    changed = interceptor(stall)
            if changed is None:
                if name in self._boundary.reasons():
                    # One that fails is switched off; the issue goes on without it.
                    self.counts["interceptors_skipped" if failed_before else "interceptors_failed"] += 1
                    continue
                if isinstance(stall, Stall):
                    self.counts["stalls_dropped_interceptor"] += 1
                else:
                    self.issue_counts["issues_dropped_interceptor"] += 1
                return True
            stall = changed
        is_stored = self._store(stall)
        if stall.is_news:
            self._tell(stall)
        if stall.state is not StallState.ONGOING:
            self.counts["stalls_at_startup"] += isinstance(stall, Stall) and stall.startup
            self._remember(stall)
        return is_stored

    def _store(self, issue: Issue) -> bool:
        with self._boundary("store") as is_on:
            if is_on:
                if self._introduce is not None:
                    self._introduce()
                    self._introduce = None  # what is known at the end is stored then
                self._stations.sink.put_issue(issue)
                return True
        return False

    def _tell(self, issue: Issue) -> None:
        repeated = self._seen[issue.fingerprint]
        for reporter in self._stations.reporters:
            with self._boundary.until_failure(f"reporter {reporter.name}") as is_on:
                if is_on:
                    reporter.report(issue, repeated)

    def _remember(self, stall: Issue) -> None:
        if isinstance(stall, Stall):
            self.recent.add(stall)
            self.counts["stalls_reported"] += 1  # last: who waits for it looks for the stall then
        else:
            self.issue_counts[f"{stall.kind.value}_reported"] += 1
        if len(self._seen) < _REMEMBERED_GROUPS or stall.fingerprint in self._seen:
            self._seen[stall.fingerprint] += 1


class Recent:
    """The last stalls of this process, for `canary.stalls`; what they have in common is held once. Bounded in
    stalls and in what they weigh; the oldest go first. The drain adds, any thread reads."""

    def __init__(self) -> None:
        self._stalls: deque[tuple[Stall, int]] = deque()
        self._frames = 0
        self._common: dict[Any, Any] = {}
        self._stacks: dict[tuple[int, ...], tuple[StackFrame, ...]] = {}
        """By the identities of their frames, which they keep alive."""

    def __iter__(self) -> Iterator[Stall]:
        """Oldest first."""
        return iter([stall for stall, _ in list(self._stalls)])

    def __len__(self) -> int:
        return len(self._stalls)

    def add(self, stall: Stall) -> None:
        if len(self._common) + len(self._stacks) > _COMMON_MAX:
            self._common.clear()
            self._stacks.clear()
        try:
            stall, frames = self._slim(stall)
        except TypeError:  # an interceptor has put in what cannot be compared by its hash
            frames = sum(len(stack.frames) for stack in stall.stacks)
        self._stalls.append((stall, frames))
        self._frames += frames
        while len(self._stalls) > _STALLS_MAX or (self._frames > _FRAMES_MAX and len(self._stalls) > 1):
            self._frames -= self._stalls.popleft()[1]

    def _slim(self, stall: Stall) -> tuple[Stall, int]:
        """The same stall, and how many frames stand in stacks that no other has."""
        own = 0
        held_frames: dict[int, StackFrame] = {}  # by identity: its stacks share frames, and hashes are slow

        def hold(frame: StackFrame) -> StackFrame:
            held = held_frames[id(frame)] = self._same(frame)
            return held

        def shared(frames: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
            nonlocal own
            same = tuple([held_frames.get(id(frame)) or hold(frame) for frame in frames])
            held = self._stacks.setdefault(tuple(map(id, same)), same)
            if held is same:
                own += len(same)
            return held

        slim = replace(
            stall,
            stacks=tuple(replace(stack, frames=shared(stack.frames)) for stack in stall.stacks),
            threads=tuple(replace(view, frames=shared(view.frames)) for view in stall.threads),
            culprit=self._same(stall.culprit),
            blocker=self._same(stall.blocker),
            evidence=self._same(stall.evidence),
            advice=self._same(stall.advice),
        )
        return slim, own

    def _same(self, value: _T) -> _T:
        """An equal one that is held already."""
        held: _T = self._common.setdefault(value, value)
        return held
