"""Decides when to look at a thread that is busy, and what its samples amount to.

A state machine for one lane, pure: what was seen, and when, are arguments. The same policy as
the native engine's: a first sample after the delay, then one each interval, the interval doubled whenever the
buffer is full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from loopcanary.late_dataclass import dataclass
from loopcanary.model.evidence import (
    CallbackNames,
    Collection,
    Sample,
    StallEvidence,
    ThreadReading,
    ThreadStack,
)
from loopcanary.model.stall import ANR_NS, HANG_NS, StallScope
from loopcanary.model.waiting import GilState
from loopcanary.portable.lane import THREAD, Ended, Lane, Ongoing
from loopcanary.portable.names import Mark, names_of_work

SAMPLES_MAX = 128
_TASKS_MAX = 16
_NOTE_LEAST_NS = 500_000_000
LATE_NS = 25_000_000
"""Five switch intervals of the GIL: so late, the watchdog was not kept waiting by Python code alone."""


class Limits(NamedTuple):
    """When to look."""

    threshold_ns: int
    delay_ns: int
    interval_ns: int
    samples_max: int = SAMPLES_MAX


class Wish(NamedTuple):
    """A sample is due. `all_threads`: of the other threads too, once."""

    epoch: int
    due_ns: int
    all_threads: bool


@dataclass(slots=True, kw_only=True)
class WatchCase:
    """What has been gathered of one piece of work."""

    epoch: int
    begin_ns: int
    due_ns: int
    interval_ns: int
    samples: list[Sample] = field(default_factory=list)
    marks: list[Mark | None] = field(default_factory=list)
    """The callback that each sample was taken in; None: not known."""
    scenes: list[str | None] = field(default_factory=list)
    """The scene of each sample."""
    dropped: Counter[str] = field(default_factory=Counter)
    threads: tuple[ThreadStack, ...] = ()
    serial: int | None = None
    """None: neither reported nor left behind yet."""
    is_told: bool = False
    """As an ANR."""
    noted_ns: int = 0
    """The last look that was left behind; 0: none was."""
    last_look_ns: int = 0
    before: ThreadReading | None = None
    tasks: tuple[str, ...] | None = None
    """The loop's other tasks when it became a hang; None: nobody has looked."""
    ready: int = 0
    """Callbacks of the turn that were not done when it was first sampled; 0 unknown."""


class StallWatch:
    """Watches one lane. Watchdog thread."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._case: WatchCase | None = None
        self._before: WatchCase | None = None

    def wish(self, look: Ongoing | None, now_ns: int) -> Wish | None:
        """The sample that is due now, if one is."""
        if look is None:
            return None
        case = self._at(look)
        if now_ns < case.due_ns:
            return None
        all_threads = now_ns - case.begin_ns >= HANG_NS and not case.threads
        return Wish(case.epoch, case.due_ns, all_threads)

    def due_ns(self, look: Ongoing) -> int:
        """When this work has to be looked at next. Opens no case: the record of the work before may be on
        the way still, and a case is kept for one piece of work back only."""
        if self._case is not None and self._case.epoch == look.epoch:
            return self._case.due_ns
        return look.begin_ns + self._limits.delay_ns

    def add(
        self,
        wish: Wish,
        samples: Sequence[Sample],
        mark: Mark | None,
        scene: str | None = None,
        threads: tuple[ThreadStack, ...] = (),
    ) -> None:
        """What was seen upon the wish: one sample, or two where it stands for the time since it was due."""
        case = self._case
        if case is None or case.epoch != wish.epoch or not samples:
            return
        case.samples.extend(samples)
        case.marks.extend([mark] * len(samples))
        case.scenes.extend([scene] * len(samples))
        case.threads = case.threads or threads
        self._settle(case, samples[-1].at_ns)
        if len(case.samples) >= self._limits.samples_max:
            _thin(case)

    def note_before(self, wish: Wish, before: ThreadReading | None) -> None:
        """Notes the thread's clocks before the work began; the first reading holds."""
        case = self._case
        if case is None or case.epoch != wish.epoch or before is None or before.at_ns > case.begin_ns:
            return
        case.before = case.before or before

    def note_ready(self, wish: Wish, ready: int) -> None:
        """How many callbacks were ready behind the one that was seen."""
        case = self._case
        if case is not None and case.epoch == wish.epoch and case.ready == 0 and ready:
            case.ready = 1 + ready

    def note_tasks(self, wish: Wish, ask: Callable[[], tuple[str, ...]]) -> None:
        """Asks for the loop's other tasks, once."""
        case = self._case
        if wish.all_threads and case is not None and case.epoch == wish.epoch and case.tasks is None:
            case.tasks = ask()

    def drop(self, wish: Wish, reason: str, now_ns: int) -> None:
        """Nothing could be seen upon the wish."""
        case = self._case
        if case is not None and case.epoch == wish.epoch:
            case.dropped[reason] += 1
            self._settle(case, now_ns)

    def long_running(self, look: Ongoing | None, now_ns: int, allowance_ns: int) -> WatchCase | None:
        """The case, at the first time that it is an ANR."""
        if look is None or now_ns - look.begin_ns < max(ANR_NS, self._limits.threshold_ns, allowance_ns):
            return None
        case = self._at(look)
        case.last_look_ns = now_ns
        was_told, case.is_told = case.is_told, True
        return None if was_told else case

    def hanging(self, look: Ongoing, allowance_ns: int) -> WatchCase | None:
        """The case, where it is a hang that is to be left behind now, or anew: as all threads are read, and
        then whenever a tenth of its length has come to it, at least half a second."""
        case = self._case
        if case is None or case.epoch != look.epoch:
            return None
        length_ns = case.last_look_ns - case.begin_ns
        if length_ns < max(HANG_NS, self._limits.threshold_ns, allowance_ns):
            return None
        return case if case.last_look_ns - case.noted_ns >= max(_NOTE_LEAST_NS, length_ns // 10) else None

    def close(self, epoch: int) -> WatchCase | None:
        """The case of work that has ended, None where it was never looked at."""
        for case in (self._case, self._before):
            if case is not None and case.epoch == epoch:
                return case
        return None

    def _at(self, look: Ongoing) -> WatchCase:
        if self._case is None or self._case.epoch != look.epoch:
            # Its record of the end may still be on the way: it is read after the samples.
            self._before = self._case
            self._case = WatchCase(
                epoch=look.epoch,
                begin_ns=look.begin_ns,
                due_ns=look.begin_ns + self._limits.delay_ns,
                interval_ns=self._limits.interval_ns,
            )
        return self._case

    def _settle(self, case: WatchCase, now_ns: int) -> None:
        """The next moment on the case's own grid; those that were missed are counted, not caught up."""
        case.last_look_ns = now_ns
        missed = max(0, now_ns - case.due_ns) // case.interval_ns
        case.due_ns += (missed + 1) * case.interval_ns
        if missed:
            case.dropped["late"] += missed


def _thin(case: WatchCase) -> None:
    """Every second sample goes, and the interval doubles: the whole of the stall stays covered."""
    del case.samples[1::2], case.marks[1::2], case.scenes[1::2]
    case.interval_ns *= 2


class Spent(NamedTuple):
    """Time between two looks: on a CPU, of the watched thread and of the whole process; and what the
    watchdog itself waited for a CPU."""

    thread_ns: int
    process_ns: int
    own_queue_ns: int = 0


def holder_while_late(late_ns: int, spent: Spent | None, patience_ns: int = LATE_NS) -> GilState:
    """Who held the GIL while the watchdog could not run.

    A thread that computed for most of the time held it. Where the watchdog had the GIL and no CPU, or
    where nobody computed, it was the host, or a call that blocks without letting go of the GIL: unknown.
    """
    if late_ns < patience_ns or spent is None or 2 * spent.own_queue_ns >= late_ns:
        return GilState.UNKNOWN
    if 2 * spent.thread_ns >= late_ns:
        return GilState.SELF
    if 2 * (spent.process_ns - spent.thread_ns) >= late_ns:
        return GilState.OTHER
    return GilState.UNKNOWN


_FIRST_TURN = 1
"""A lane counts its turns by their begins and ends, from 0."""


def _scene(
    lane: Lane, case: WatchCase | None, ended: Ended | None, callback: CallbackNames | None
) -> str | None:
    """That of most samples in the callback that held the turn, if one did: others of the turn may have had
    theirs. Of what nobody looked at it is known only where the thread does one thing at a time."""
    if case is not None and case.samples:
        seen = zip(case.scenes, case.marks, strict=True)
        of_it = (scene for scene, mark in seen if callback in (None, mark and mark.names))
        return next((scene for scene, _ in Counter(filter(None, of_it)).most_common(1)), None)
    if lane.identity.loop_kind != THREAD:
        return None
    return ended.scene if ended is not None else lane.scene


def make_evidence(
    *,
    serial: int,
    lane: Lane,
    case: WatchCase | None,
    ended: Ended | None,
    collections: tuple[Collection, ...] = (),
    earlier_collections: tuple[Collection, ...] = (),
) -> StallEvidence:
    """The evidence of a stall: with its samples where there is a case, over where there is an end."""
    source = ended or case
    assert source is not None
    begin_ns, epoch = source.begin_ns, source.epoch
    end_ns = ended.end_ns if ended is not None else None
    last_look_ns = end_ns or max(begin_ns, case.last_look_ns if case is not None else 0)
    marks = _marks_within(case, begin_ns, last_look_ns)
    work = ended.work if ended is not None else names_of_work(lane.work(epoch))
    dominant, share, is_run = _dominant(marks)
    # Work of `watch` is one callback by name. Elsewhere only the samples show whether one did it all.
    is_callback = work is not None or (is_run and 2 * share >= 1)
    tally = ended.tally if ended is not None and not is_callback else None
    before = ended.earlier if ended is not None else lane.before(begin_ns)
    return StallEvidence(
        serial=serial,
        scope=StallScope.CALLBACK if is_callback else StallScope.TURN,
        tid=lane.identity.tid,
        loop_kind=lane.identity.loop_kind,
        thread_name=lane.identity.thread_name,
        begin_ns=begin_ns,
        end_ns=end_ns,
        last_look_ns=last_look_ns,
        threshold_ns=lane.threshold_ns,
        names=work if work is not None else dominant,
        scene=_scene(lane, case, ended, dominant),
        **_sampled(case),
        collections=collections,
        turn_begin_ns=begin_ns,
        **_callbacks(ended, case, marks, last_look_ns - begin_ns, share if is_run else 0.0),
        end_cpu_ns=ended.cpu_ns if ended is not None else None,
        allowance_ns=ended.allowance_ns if ended is not None else lane.allowance(epoch),
        engine="portable",
        contributors=tally.contributors() if tally is not None else (),
        contributors_from_ns=begin_ns if tally is not None and tally.by_name else None,
        contributors_dropped=tally.dropped if tally is not None else 0,
        earlier=before.work,
        earlier_from_ns=before.from_ns,
        earlier_last=before.last,
        earlier_collections=earlier_collections,
        first_turn=work is None and epoch == _FIRST_TURN,
    )


def _sampled(case: WatchCase | None) -> dict[str, Any]:
    """The evidence that the watchdog gathered of a case."""
    if case is None:
        return {}
    return {
        "samples": tuple(case.samples),
        "sample_interval_ns": case.interval_ns,
        "samples_dropped": tuple(sorted(case.dropped.items())),
        "threads": case.threads,
        "tasks": (case.tasks or ())[:_TASKS_MAX],
        "task_count": len(case.tasks or ()),
        "before": case.before,
    }


def _callbacks(
    ended: Ended | None, case: WatchCase | None, marks: Sequence[Mark | None], duration_ns: int, share: float
) -> dict[str, Any]:
    """The turn's callbacks, as a probe has reported them, or as the samples show them; `share`: of the run
    that most samples were taken in."""
    if ended is not None and ended.callbacks:
        # Named work may be nested.
        named_ns = sum(one[1] for one in ended.tally.by_name.values())
        number, sum_ns, longest_ns = ended.callbacks, min(duration_ns, named_ns), ended.longest_ns
    else:
        runs = {id(mark.key) for mark in marks if mark is not None and mark.is_run}
        number = max(len(runs), 0 if case is None else case.ready)
        sum_ns, longest_ns = duration_ns if number else 0, int(duration_ns * share)
    return {"turn_callbacks": number, "turn_callback_ns": sum_ns, "longest_callback_ns": longest_ns}


def _marks_within(case: WatchCase | None, begin_ns: int, end_ns: int) -> list[Mark | None]:
    if case is None:
        return []
    pairs = zip(case.samples, case.marks, strict=True)
    return [mark for sample, mark in pairs if begin_ns <= sample.at_ns <= end_ns]


def _dominant(marks: Sequence[Mark | None]) -> tuple[CallbackNames | None, float, bool]:
    """The callback that most samples were taken in, its share of the samples, and whether it ran once.

    Samples are evenly spaced, so that their number stands for time.
    """
    counts = Counter(id(mark.key) for mark in marks if mark is not None)
    if not counts:
        return None, 0.0, False
    key, count = counts.most_common(1)[0]
    share = count / len(marks)
    found = next(mark for mark in marks if mark is not None and id(mark.key) == key)
    return (found.names if 2 * share >= 1 else None), share, found.is_run
