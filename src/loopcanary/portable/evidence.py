"""From what the portable engine gathered to the evidence of a stall. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from loopcanary.model.evidence import CallbackNames, Collection, StallEvidence
from loopcanary.model.stall import StallScope
from loopcanary.portable.lane import THREAD, Ended, Lane
from loopcanary.portable.names import Mark, names_of_work
from loopcanary.portable.stall_watch import WatchCase

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
    """What the watchdog gathered."""
    if case is None:
        return {}
    return {
        "samples": tuple(case.samples),
        "sample_interval_ns": case.interval_ns,
        "samples_dropped": tuple(sorted(case.dropped.items())),
        "threads": case.threads,
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
