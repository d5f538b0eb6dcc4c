"""The seams between the parts. Every part on the rim implements one of these; assembly wires them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from contextvars import ContextVar
    from pathlib import Path

    from loopcanary.model import (
        Clock,
        Config,
        Issue,
        LagIssue,
        LaneTotals,
        Session,
        Stall,
        StallEvidence,
        TraceFigures,
    )
    from loopcanary.model.search import (
        GroupSums,
        IssueGroup,
        IssueMark,
        IssueQuery,
        IssueTime,
        Remark,
        SessionMark,
        TimeCell,
        Totals,
    )


class Backend(Protocol):
    """What sees stalls: the native engine or the portable one. All methods run under the GIL, on the
    drain thread unless they say otherwise; none raises for anything that the watched program does."""

    name: str

    def start(self) -> None:
        """Begins to watch. Any thread."""

    def stop(self) -> None:
        """Ends watching, joins its threads and gives back everything it took. Any thread."""

    def wait(self, timeout_s: float | None) -> bool:
        """Blocks without the GIL until there is news or the time is over; True if there is news."""

    def wake(self) -> None:
        """Makes a `wait` return. Any thread."""

    def take(self) -> Sequence[StallEvidence]:
        """Stalls that ended, or became an ANR, since the last call; an ANR is given once while it
        lasts and once more when it is over (same serial)."""

    def release(self, evidence: StallEvidence) -> None:
        """What `take` gave is stored, or not wanted: its place may be used again."""

    def totals(self) -> Sequence[LaneTotals]:
        """Sums of every watched thread."""

    def statistics(self) -> dict[str, int]:
        """Own counters: what was done, and what was dropped for which reason."""


class Probe(Protocol):
    """Tells the engine what one kind of loop does."""

    kind: str

    def install(self) -> None:
        """Patches the loop kind, if its library is there, or when it is imported. Idempotent."""

    def uninstall(self) -> None:
        """Takes back what is still ours."""


class LoopHooks(Protocol):
    """How a probe reports a loop that has hooks: the native engine's LoopHooks, or the portable one's
    (native/probes/hooks/loop_hooks.h). On the loop's thread; further arguments are ignored."""

    def run_begin(self, *ignored: object) -> None:
        """The loop begins to run on this thread: the first turn."""

    def run_end(self, *ignored: object) -> None:
        """The loop runs no more."""

    def wait_begin(self, *ignored: object) -> None:
        """The loop is about to wait: the turn is over."""

    def wait_end(self, *ignored: object) -> None:
        """The wait is over: the next turn."""

    def work_begin(self, work: object = None, *ignored: object) -> None:
        """A callback begins; `work` names it."""

    def work_end(self, *ignored: object) -> None:
        """The callback ends."""


class PortableSide(Protocol):
    """What probes of the portable engine are given where those of the native one get the extension."""

    def LoopHooks(  # noqa: N802 - as the extension has it
        self, kind: str, loop_seen: Callable[[], object] | None = None, /
    ) -> LoopHooks:
        """The hooks of one kind of loop."""

    def runs(self, loop: Any, kind: str | None = None) -> None:
        """A loop is about to run on this thread. One of a `kind` has timers as asyncio has them
        (`call_later`, `is_closed`), and a ticker times it. If it has `runners`, these are the frames that run
        it, or a loop inside: (id, instruction; -1: any) each. None: one of asyncio's or uvloop's. Raises
        nothing."""

    def stopped(self, loop: Any) -> None:
        """It runs no more. Its thread. Raises nothing."""


class ScopeListener(Protocol):
    """The engine that hears of scopes: native or portable. Called on the thread that works."""

    def work_begin(self, name: str, /) -> Any:
        """A piece of work begins; the token goes to work_end, None where there is nothing to end. A token
        that is false: the work is a part of other work, and not timed by itself."""

    def work_end(self, token: Any, /) -> None:
        """The piece of work ends."""

    def set_scene(self, scene: str | None, /) -> None:
        """Where this thread's work is from now on."""

    def use_scenes(self, variable: ContextVar[str | None], /) -> None:
        """Scenes are used in this process: this variable holds them."""

    def allow(self, nanoseconds: int, /) -> None:
        """The running callback may take this time before it is a stall."""


class FrameTrace(Protocol):
    """Hears of the frames of one surface (a window, a screen). All on its thread; nothing is raised.

    `now_ns` and the like: time.monotonic_ns(). A surface calls either `frame_drawn`, and `waited` where it
    knows of the loop's waits, or `frame`.
    """

    def frame_drawn(self, now_ns: int, scene: str | None = None) -> None:
        """A frame was shown. Its time runs from the frame before it, or from the end of a pause. `scene`:
        used where the program has set none with loopcanary.scene(), such as the window's title."""

    def frame(self, begin_ns: int, end_ns: int, scene: str | None = None) -> None:
        """The drawing of a frame, begin (when it was asked for, if known) to end, for surfaces that draw on
        demand and know nothing of waits: where no frame was shown for 100 ms before `begin_ns`, nothing was
        drawn in between, and the frame's time begins there."""

    def waited(self, begin_ns: int, end_ns: int) -> None:
        """The loop had nothing to do. After 100 ms of it nothing is being drawn: the next frame's time begins
        with `end_ns`. Blocking is not waiting: it counts."""

    def idle(self) -> None:
        """Drawing stops (hidden, minimized, paused): the next frame only starts the clock."""

    def at_refresh_rate(self, hertz: float) -> None:
        """The screen's refresh rate, or the rate that the program aims at; what is no rate is ignored. Cheap
        where it is what it was."""

    def close(self) -> None:
        """The surface is gone."""


class InputTrace(Protocol):
    """Hears of the input events that one thread handles. That thread; nothing is raised."""

    def handled(
        self, name: str, arrived_ns: int, begin_ns: int, end_ns: int, scene: str | None = None
    ) -> None:
        """An event called `name` (class and receiver, never its contents) that arrived at `arrived_ns` was
        handled from `begin_ns` to `end_ns`, all of time.monotonic_ns()."""


class IdleTrace(Protocol):
    """Hears of the idle work that one thread does. That thread; nothing is raised."""

    def ran(self, name: str, begin_ns: int, end_ns: int, scene: str | None = None) -> None:
        """An idle handler called `name` has run."""

    def spun(self, name: str, begin_ns: int, end_ns: int, runs: int) -> None:
        """The loop never waited from `begin_ns` to `end_ns`, as the work called `name` asked for itself anew
        each time, `runs` times."""


class Tracers(Protocol):
    """Gives traces to probes. Any thread, under the GIL; nothing is raised. Where no engine runs, what a
    trace is told goes nowhere."""

    def frames(self, loop_kind: str, refresh_hz: float = 60.0) -> FrameTrace:
        """For one surface of the calling thread."""

    def input(self, loop_kind: str, *, limit_ns: int | None = None) -> InputTrace:
        """For the calling thread. What takes longer than `limit_ns` is an issue; None: the usual limit."""

    def idle(self, loop_kind: str) -> IdleTrace:
        """For the calling thread."""


class Windows(Protocol):
    """What probes of toolkits with windows are to do. Any thread, under the GIL; nothing is raised."""

    def scene_of(self, title: str, otherwise: str) -> str:
        """What a window with this title is called as a scene; `otherwise`, its class, where titles are not
        told or it has none. The answer stays alive."""


class Traces(Protocol):
    """What became of all traces, for the engine. Drain thread, unless said otherwise; nothing is raised."""

    def begin(self, session: Session, clock: Clock, wake: Callable[[], None]) -> None:
        """The engine runs; `wake` makes the drain look. Any thread."""

    def end(self) -> None:
        """The engine runs no more; the last slices are over. Any thread."""

    def forget(self) -> None:
        """In a forked child: what was traced is the parent's."""

    def take(self, now_ns: int, stalls: Iterable[Stall], *, is_last: bool) -> Sequence[LagIssue]:
        """Issues since the last call, of which the stalls they rest on can be known by now. `stalls`: what
        the engine has seen lately."""

    def patience_s(self, now_ns: int) -> float | None:
        """When `take` will have something; None: not before `wake` is called."""

    def news(self) -> TraceFigures | None:
        """The figures, where there are new ones that are worth storing."""

    def figures(self) -> TraceFigures:
        """The figures as they are now. Any thread."""


class TracerPort(Protocol):
    """Where a tracer of a third party tells what it found. Any thread, under the GIL; nothing is raised, and
    nothing is waited for."""

    def report(self, issue: LagIssue) -> bool:
        """Takes an issue of a registered kind for the drain thread, which checks it, cuts it to size and
        completes it. False where it is not taken: too many wait, or the tracer is switched off."""

    def failed(self, error: Exception) -> None:
        """The tracer has failed inside the program: it is switched off, and logged once. The tracer's `stop`
        is called, on this thread."""


@runtime_checkable
class Tracer(Protocol):
    """Records one kind of evidence by itself; one is made for each start of the engine. `destroy()`, where it
    has one, is called when all that it reported has been taken; not in a forked child."""

    name: str

    def init(self, desk: TracerPort) -> None:
        """Called once, before `start`: nothing is to be done yet. The thread that starts the engine."""

    def start(self) -> None:
        """The engine runs: begins to record. As `init`."""

    def stop(self) -> None:
        """Takes back everything that it has put into the program. Called once, whether `start` went well or
        not; any thread. Called in a forked child, too, where the parent's threads are not there: what waits
        for one, or for a lock, never ends."""


@runtime_checkable
class Traced(Protocol):
    """A probe that reports frames, input or idle work."""

    def use_tracers(self, tracers: Tracers) -> None:
        """Called once, before `install`."""


@runtime_checkable
class Windowed(Protocol):
    """A probe of a toolkit with windows."""

    def use_windows(self, windows: Windows) -> None:
        """Called once, before `install`."""


class Interceptor(Protocol):
    """Sees each issue before it is stored: returns it, a changed one, or None to drop it."""

    def __call__(self, issue: Issue, /) -> Issue | None:
        """On the drain thread. One that raises is switched off."""


class WatchedRun(Protocol):
    """What a reporter is made for: the run that begins."""

    @property
    def config(self) -> Config:
        """The settings in force."""

    @property
    def session(self) -> Session:
        """The process."""

    def exit_changer(self) -> Callable[[int], object]:
        """Sets the status of a program that would end with 0. ImportError: the extension is not there."""


@runtime_checkable
class Reporter(Protocol):
    """Tells people about issues while the program runs. Called on the drain thread. Registered is what makes
    it: called with the WatchedRun; None: this run wants none.

    One that also has `counts() -> dict[str, int]` is asked by statistics(), on any thread.
    """

    name: str

    def report(self, issue: Issue, repeated: int) -> None:
        """One issue; `repeated`: how many of the same fingerprint there were before in this session."""

    def close(self, session: Session, stalls: Iterable[Stall]) -> None:
        """The session ends. `stalls`: what was reported in it, oldest first, bounded."""


class Importer(Protocol):
    """Reads files of one format into a store."""

    def recognises(self, path: Path) -> bool:
        """Whether the file is of its format."""

    def read(self, path: Path, taker: Any, *, now_wall_ns: int) -> None:
        """Gives all records of the file to a store.Intake, as hostile input: nothing is kept where it raises.
        A bundles.BundleError says what is wrong with the file."""


class Sink(Protocol):
    """Where issues and sessions are kept; the store implements it. Thread-safe."""

    def put_session(self, session: Session) -> None:
        """Adds the session or replaces what is known of it."""

    def put_issue(self, issue: Issue) -> None:
        """Adds the issue or replaces an earlier state of it (same id)."""

    def put_traces(self, session: str, figures: TraceFigures) -> None:
        """What a session's traces tell so far; replaces what they told before."""

    def rest(self, patience_s: float) -> bool:
        """Closes what is open and keeps every thread out until `go_on`: a fork is about to be. False, and
        nothing is to be undone, where that takes longer. StoreError and the like where it fails."""

    def go_on(self) -> None:
        """The fork is over, in the parent. Called after a `rest` that gave True."""

    def close(self) -> None:
        """Lets go of files; a later put opens them again."""


class IssueStore(Protocol):
    """What a store answers to everyone who reads one; several together answer so, too.

    Thread-safe. Raises the store's own errors. A limit of 0: all.
    """

    def totals(self, query: IssueQuery) -> Totals:
        """Sums over the issues that the query finds."""

    def group_sums(self, query: IssueQuery) -> Sequence[GroupSums]:
        """All groups in short, by total time, largest first."""

    def groups(
        self, query: IssueQuery, limit: int = 0, fingerprints: Sequence[str] | None = None
    ) -> Sequence[IssueGroup]:
        """Groups by total time, largest first. `fingerprints`: of these only."""

    def issues(self, query: IssueQuery, limit: int = 0) -> Sequence[Issue]:
        """Issues, newest first."""

    def issue(self, issue_id: str) -> Issue | None:
        """The issue with this id."""

    def marks(self, query: IssueQuery, fingerprints: Sequence[str] | None = None) -> Sequence[IssueMark]:
        """Issues in short, in no order; `fingerprints`: of these groups only."""

    def times(self, query: IssueQuery, sessions: Sequence[str] | None = None) -> Sequence[IssueTime]:
        """When issues began and how long they were, in no order; `sessions`: of these only."""

    def time_cells(
        self,
        query: IssueQuery,
        key: Literal["fingerprint", "cause"],
        *,
        begin_wall_ns: int,
        step_ns: int,
        cells: int,
        keys: Sequence[str] | None = None,
    ) -> Sequence[TimeCell]:
        """Issues by key and span of time, in no order: `cells` spans of `step_ns` from `begin_wall_ns` on; a
        key and span may occur several times. `keys`: these only."""

    def scenes(self) -> Sequence[str]:
        """Names of all scenes of issues, in order."""

    def sessions(self, query: IssueQuery, limit: int = 0) -> Sequence[Session]:
        """Sessions of the query's time, newest first."""

    def session_marks(self, query: IssueQuery) -> Sequence[SessionMark]:
        """All sessions of the query's time, in short, newest first."""

    def remarks(self) -> dict[str, Remark]:
        """What people said of bugs, by fingerprint."""
