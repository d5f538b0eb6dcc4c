"""The thread of the portable engine: runs the observer when something is due, and rests otherwise."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar
from dataclasses import replace
from functools import partial
from itertools import count
from types import FrameType
from typing import Any, NamedTuple

from loopcanary.model.evidence import (
    KernelView,
    LaneTotals,
    Sample,
    StallEvidence,
    ThreadReading,
    ThreadStack,
)
from loopcanary.model.scene import scene_name
from loopcanary.model.waiting import GilState
from loopcanary.portable.clocks import CollectionLog, ThreadClocks
from loopcanary.portable.frame_reader import FrameCache, Reading, read
from loopcanary.portable.hang_file import HangFile
from loopcanary.portable.lane import Lane, Ongoing
from loopcanary.portable.names import (
    context_of_work,
    handle_run_code,
    mark_of,
    mark_of_called,
    other_tasks,
    ready_callbacks,
    runners_of,
)
from loopcanary.portable.stall_watch import (
    LATE_NS,
    Limits,
    Spent,
    StallWatch,
    WatchCase,
    Wish,
    holder_while_late,
    make_evidence,
)
from loopcanary.thread_frames import thread_frames

THREADS_MAX = 64
OWN_THREADS = "loopcanary"
"""How the names of our own threads begin."""
_PATIENT_SWITCHES = 5
_OWN_STALE_NS = 1_000_000_000


class Baseline(NamedTuple):
    """CPU times at an earlier look."""

    at_ns: int
    thread: KernelView
    process_ns: int
    own_queue_ns: int
    """What the watchdog itself had waited for a CPU, up to a second earlier."""


class WatchedLane:
    """A lane under watch, and the loop it belongs to, if any."""

    def __init__(self, lane: Lane, limits: Limits, loop: Any = None) -> None:
        self.lane = lane
        self.watch = StallWatch(limits)
        self.baseline: Baseline | None = None
        self.settled: Baseline | None = None
        """From before the work that goes on."""
        self.opened: KernelView | None = None
        """The thread's clocks when the lane was opened."""
        self._loop: Callable[[], Any] | None = None
        self.follow(loop)

    def follow(self, loop: Any) -> None:
        self._loop = None if loop is None else weakref.ref(loop)

    def renew(self, baseline: Baseline | None, look: Ongoing | None) -> None:
        """What the clocks are now. Those from before the work that goes on are kept as long as it does."""
        if self.baseline is not None and (look is None or self.baseline.at_ns <= look.begin_ns):
            self.settled = self.baseline
        self.baseline = baseline

    def before(self, begin_ns: int) -> ThreadReading | None:
        """The last look at the clocks before work that began at this time."""
        for known in (self.baseline, self.settled):
            if known is not None and known.at_ns <= begin_ns:
                return ThreadReading(at_ns=known.at_ns, kernel=known.thread)
        return None

    def totals(self, now_ns: int, gc_ns: int | None) -> LaneTotals:
        """The lane's sums, with what its thread's clocks have gained by the last look at it. Any thread."""
        totals, opened, last = self.lane.totals(now_ns), self.opened, self.baseline
        if opened is None or last is None:
            return replace(totals, gc_ns=gc_ns)
        return replace(
            totals,
            gc_ns=gc_ns,
            on_cpu_ns=max(0, last.thread.on_cpu_ns - opened.on_cpu_ns),
            run_queue_ns=max(0, last.thread.run_queue_ns - opened.run_queue_ns),
        )

    @property
    def loop(self) -> Any:
        """The loop while it is alive."""
        return None if self._loop is None else self._loop()


class _Taken(NamedTuple):
    """The reading upon one wish."""

    watched: WatchedLane
    wish: Wish
    at_ns: int
    reading: Reading
    others: list[tuple[int, Reading]]
    scene: str | None


class Observer:
    """Turns lanes and frames into evidence. Watchdog thread only."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        clocks: ThreadClocks,
        collections: CollectionLog,
        publish: Callable[[StallEvidence], None],
        hangs: HangFile,
        frames: Callable[[], dict[int, FrameType]] = thread_frames,
    ) -> None:
        """`hangs`: where those are left that the process may not survive."""
        self._clock = clock
        self._clocks = clocks
        self._collections = collections
        self._publish = publish
        self._frames = frames
        self._hangs = hangs
        self._cache = FrameCache()
        self._serials = count(1)
        self._free_since_ns = 0
        self._own_tid = 0
        self.scenes: ContextVar[Any] | None = None
        """Holds the scene of each context, where scenes are used."""
        self.counters: Counter[str] = Counter()

    def acquaint(self, one: WatchedLane) -> None:
        """Notes where the thread's clocks stand before its first work. Thread that opens the lane."""
        one.baseline = self._baseline(one.lane.identity.tid, late=False)
        if one.opened is None and one.baseline is not None:
            one.opened = one.baseline.thread

    def round(self, watched: Sequence[WatchedLane], now_ns: int) -> int | None:
        """Looks at all lanes once. Gives the moment of the next look, None if no lane is busy."""
        self._own_tid = threading.get_native_id()
        looks = [one.lane.look() for one in watched]
        wishes = [one.watch.wish(look, now_ns) for one, look in zip(watched, looks, strict=True)]
        if any(wishes):
            # First of all, while the GIL is ours still: any call that lets it go lets the thread run on.
            for taken in self._take(watched, wishes):
                self._add(taken)
        for one in watched:
            self._close_ended(one)
        for one, look in zip(watched, looks, strict=True):
            self._publish_anr(one, look, now_ns)
            self._leave_hang(one, look)
        for one, look, wish in zip(watched, looks, wishes, strict=True):
            if wish is None and one.lane.closed_ns is None:
                one.renew(self._baseline(one.lane.identity.tid, late=False), look)
        next_ns = self._next_look(watched)
        self._free_since_ns = self._clock()
        return next_ns

    def _next_look(self, watched: Sequence[WatchedLane]) -> int | None:
        looks = [(one.watch, one.lane.look()) for one in watched]
        return min((watch.due_ns(look) for watch, look in looks if look is not None), default=None)

    def _take(self, watched: Sequence[WatchedLane], wishes: Sequence[Wish | None]) -> list[_Taken]:
        handle_run = handle_run_code()
        at_ns = self._clock()
        frames = self._frames()
        taken = []
        for one, wish in zip(watched, wishes, strict=True):
            if wish is None:
                continue
            ident = one.lane.identity.ident
            reading = read(frames.get(ident), handle_run, runners_of(one.loop))
            others = _others(frames, ident) if wish.all_threads else []
            scene = self._scene(one.lane, wish, reading)
            if one.lane.epoch != wish.epoch:
                # It ended while we read: what was read may be of the next piece of work.
                self._drop(one, wish, "moved", at_ns)
            elif not reading.places:
                self._drop(one, wish, "unreadable", at_ns)
            else:
                taken.append(_Taken(one, wish, at_ns, reading, others, scene))
        del frames  # this one is among them, and such a cycle keeps all threads' variables alive
        return taken

    def _drop(self, one: WatchedLane, wish: Wish, reason: str, at_ns: int) -> None:
        one.watch.drop(wish, reason, at_ns)
        self.counters[f"samples_dropped_{reason}"] += 1

    def _add(self, taken: _Taken) -> None:
        one, wish = taken.watched, taken.wish
        # Late by others' doing, not by a round of our own that was under way when the sample was due.
        due_ns = max(wish.due_ns, self._free_since_ns)
        late_ns = max(0, taken.at_ns - due_ns)
        before, earlier = one.baseline, one.before(one.lane.begin_ns)
        now = one.baseline = self._baseline(one.lane.identity.tid, late=late_ns >= _patience_ns())
        holder = holder_while_late(late_ns, _spent(before, now), _patience_ns())
        sample = Sample(
            at_ns=taken.at_ns,
            stack=self._cache.stack(taken.reading),
            kernel=now.thread if now is not None else None,
            gil=holder,
            waits_for_gil=holder is GilState.OTHER,
        )
        samples = [sample]
        if holder is not GilState.UNKNOWN and before is not None and now is not None:
            self.counters["samples_late"] += 1
            samples = [_as_it_was_due(sample, due_ns, before, now), sample]
        mark = mark_of(taken.reading.handle, one.loop) or mark_of_called(taken.reading.called)
        one.watch.add(wish, samples, mark, taken.scene, self._threads(taken))
        one.watch.note_before(wish, earlier)
        one.watch.note_ready(wish, ready_callbacks(one.loop))
        one.watch.note_tasks(wish, partial(other_tasks, one.loop))
        self.counters["samples"] += 1

    def _scene(self, lane: Lane, wish: Wish, reading: Reading) -> str | None:
        """The scene of the context that the callback runs in; outside callbacks, the thread's last scene."""
        context = getattr(reading.handle, "_context", None) or context_of_work(lane.work(wish.epoch))
        if self.scenes is None or not isinstance(context, Context):
            return lane.scene
        return scene_name(context.get(self.scenes))

    def _threads(self, taken: _Taken) -> tuple[ThreadStack, ...]:
        if not taken.others:
            return ()
        known = dict(threading._active)  # type: ignore[attr-defined]  # noqa: SLF001 - enumerate() takes a lock
        threads = []
        for ident, reading in taken.others:
            thread = known.get(ident)
            name = thread.name if thread is not None else ""
            if not name.startswith(OWN_THREADS):
                tid = getattr(thread, "native_id", None) or 0
                stack = self._cache.stack(reading)
                threads.append(ThreadStack(tid=tid, at_ns=taken.at_ns, name=name, stack=stack))
        return tuple(threads)

    def _close_ended(self, one: WatchedLane) -> None:
        ended_records = one.lane.ended
        while ended_records:
            self.counters["stalls"] += 1  # before it is gone from there: `stalls_ended` never counts too few
            ended = ended_records.popleft()
            case = one.watch.close(ended.epoch)
            serial = case.serial if case is not None and case.serial is not None else next(self._serials)
            evidence = make_evidence(
                serial=serial,
                lane=one.lane,
                case=case,
                ended=ended,
                collections=self._collections.between(ended.begin_ns, ended.end_ns),
                earlier_collections=self._collections.over_at(ended.begin_ns),
            )
            self._hangs.note(evidence)
            self._publish(evidence)

    def _publish_anr(self, one: WatchedLane, look: Ongoing | None, now_ns: int) -> None:
        if look is None or one.lane.epoch != look.epoch:
            return
        case = one.watch.long_running(look, now_ns, one.lane.allowance(look.epoch))
        if case is None:
            return
        self.counters["anrs"] += 1
        self._publish(self._so_far(one.lane, case))

    def _leave_hang(self, one: WatchedLane, look: Ongoing | None) -> None:
        if look is None or one.lane.epoch != look.epoch:
            return
        case = one.watch.hanging(look, one.lane.allowance(look.epoch))
        if case is not None:
            case.noted_ns = case.last_look_ns
            self._hangs.note(self._so_far(one.lane, case))

    def _so_far(self, lane: Lane, case: WatchCase) -> StallEvidence:
        """What is known of a stall that goes on."""
        if case.serial is None:
            case.serial = next(self._serials)
        return make_evidence(
            serial=case.serial,
            lane=lane,
            case=case,
            ended=None,
            collections=self._collections.between(case.begin_ns, case.last_look_ns),
            earlier_collections=self._collections.over_at(case.begin_ns),
        )

    def _baseline(self, tid: int, *, late: bool) -> Baseline | None:
        now_ns = self._clock()
        thread = self._clocks.read(tid, now_ns)
        if thread is None:
            return None
        stale_ns = 0 if late else _OWN_STALE_NS
        own_ns = self._clocks.run_queue_ns(self._own_tid, now_ns, stale_ns)
        return Baseline(now_ns, thread, self._clocks.process_ns(), own_ns)


def _others(frames: dict[int, FrameType], ident: int) -> list[tuple[int, Reading]]:
    own = threading.get_ident()
    idents = [other for other in frames if other not in (ident, own)][:THREADS_MAX]
    return [(other, read(frames[other])) for other in idents]


def _patience_ns() -> int:
    """How late a watchdog may be that only waits for its turn among Python threads."""
    return max(LATE_NS, int(_PATIENT_SWITCHES * sys.getswitchinterval() * 1e9))


def _spent(before: Baseline | None, now: Baseline | None) -> Spent | None:
    if before is None or now is None:
        return None
    return Spent(
        thread_ns=now.thread.on_cpu_ns - before.thread.on_cpu_ns,
        process_ns=now.process_ns - before.process_ns,
        own_queue_ns=now.own_queue_ns - before.own_queue_ns,
    )


def _as_it_was_due(sample: Sample, due_ns: int, before: Baseline, now: Baseline) -> Sample:
    """The same stack at the moment when the sample was due.

    That the watchdog could not run means that no other thread did: the GIL's holder had it all the time, and
    the watched thread was in that one call, or waited in this one place.
    """
    late_ns = sample.at_ns - due_ns
    spent_ns = min(late_ns, now.thread.on_cpu_ns - before.thread.on_cpu_ns)
    queued_ns = min(late_ns - spent_ns, now.thread.run_queue_ns - before.thread.run_queue_ns)
    kernel = KernelView(
        on_cpu_ns=now.thread.on_cpu_ns - spent_ns, run_queue_ns=now.thread.run_queue_ns - max(0, queued_ns)
    )
    return Sample(
        at_ns=due_ns,
        stack=sample.stack,
        kernel=kernel,
        gil=sample.gil,
        waits_for_gil=sample.waits_for_gil,
    )


_PARK_AFTER_NS = 1_000_000_000
_FAULTS_MAX = 10
_JOIN_S = 2.0


class WatchdogBell:
    """Wakes one thread. Ringing never waits and takes no lock that a ringer could hold already, so that
    signal handlers and finalizers may ring; rings add up to one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()  # held: not rung yet

    def ring(self) -> None:
        """Wakes the waiter, or the next one. Any thread."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # Rung already, and not yet heard.

    def wait(self, timeout_s: float | None) -> bool:
        """Waits without the GIL; False where the time was over first."""
        if timeout_s is None:
            return self._lock.acquire()
        return self._lock.acquire(timeout=min(max(timeout_s, 0.0), threading.TIMEOUT_MAX))


class Watchdog:
    """Looks at the lanes while any is busy; parks after a second in which none was."""

    def __init__(
        self,
        observer: Observer,
        watched: Callable[[], tuple[WatchedLane, ...]],
        clock: Callable[[], int],
        pause_ns: int,
    ) -> None:
        self._observer = observer
        self._watched = watched
        self._clock = clock
        self._pause_ns = pause_ns
        self._bell = WatchdogBell()
        self._parked = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.faults = 0
        self.rounds = 0
        self.parks = 0

    def start(self) -> None:
        """Starts the thread. Any thread."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"{OWN_THREADS}-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        """Ends and joins the thread; whether it has ended. Any thread, also its own and that of a forked
        child."""
        self._stopping = True
        self._bell.ring()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_S)
        return thread is None or not thread.is_alive()

    def wake_if_parked(self) -> None:
        """Work begins: called once a turn by watched threads, so one attribute is all it costs."""
        if self._parked:
            self._parked = False
            self._bell.ring()

    def wake(self) -> None:
        """There is something to do at once. Any thread."""
        self._bell.ring()

    def _run(self) -> None:
        active, seen_ns = 0, self._clock()
        while not self._stopping and self.faults < _FAULTS_MAX:
            now_ns = self._clock()
            next_ns = self._round(now_ns)
            watched = self._watched()
            turns = sum(one.lane.epoch for one in watched)
            if next_ns is not None or turns != active:
                active, seen_ns = turns, now_ns
            if next_ns is None and now_ns - seen_ns >= _PARK_AFTER_NS:
                self._park(watched)
                seen_ns = self._clock()
                continue
            pause_ns = self._pause_ns if next_ns is None else min(self._pause_ns, next_ns - self._clock())
            self._bell.wait(pause_ns / 1e9)
        if self.faults < _FAULTS_MAX:
            # A stall may have ended since the last look: the caller that stops us wants it.
            self._round(self._clock())

    def _round(self, now_ns: int) -> int | None:
        self.rounds += 1
        try:
            return self._observer.round(self._watched(), now_ns)
        except Exception as error:  # noqa: BLE001 - the boundary: nothing of ours reaches the program
            self.faults += 1
            if self.faults == 1:
                _log_fault(error)
            return None

    def _park(self, watched: tuple[WatchedLane, ...]) -> None:
        """Rests until work begins. The word first, then a last look: work that begins after it rings."""
        self._parked = True
        if not self._stopping and all(one.lane.look() is None for one in watched):
            self.parks += 1
            self._bell.wait(None)
        self._parked = False


def _log_fault(error: Exception) -> None:
    import logging  # only where something failed

    text = "the portable engine failed in a round, and ends after %d such"
    logging.getLogger("loopcanary").error(text, _FAULTS_MAX, exc_info=error)
