"""From what a watcher said to what it got right. Pure functions of the truth and the reports.

A watcher is credited if the culprit's line is anywhere in its report of the stall. loopcanary names one
culprit, the others print whole stacks, and dumpers the stacks of all threads. That is in their favour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zoo import advice
from zoo.catalogue import Kind, Place
from zoo.observation import Frame, Report, same_file
from zoo.truth import Truth
from zoo.watchers import THRESHOLD_MS

TOLD_LATE_NS = 400_000_000
"""A report that comes later than this after the stall's end is not taken for a report of it."""
ABSOLUTE_MS, RELATIVE = 2.0, 0.01
"""How far a duration may be off: whichever is more."""
MACHINES = 0.5
"""Of a stall that the thread spent ready and not run for more than this part, `host` is right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One run. None: not asked, or the watcher does not say such a thing."""

    detected: bool | None = None
    function: bool | None = None
    line: bool | None = None
    cause: bool | None = None
    best: bool | None = None
    """The word is the one that says most."""
    holder: bool | None = None
    """What the guilty thread did, and its name."""
    duration_error_ms: float | None = None
    duration_right: bool | None = None
    false_alarms: int | None = None
    survived: bool | None = None
    """Of a killed program: whether the right line was left behind."""
    bug: str | None = None
    """What it counts this stall under: the same in each repeat."""
    advice: bool | None = None
    """Its code can be written where it is to be, and it has one of the kind's words."""


def score(
    kind: Kind, truth: Truth, truth_began_wall_ns: int, reports: Sequence[Report], *, disturbed: bool = False
) -> Score:
    """What the watcher got right in one run.

    Of a disturbed run only detection, function and line are judged: the machine had a part in the rest. A
    watcher that says how long the thread waited for a CPU is asked for cause and holder, too.
    A run whose stall was none, being shorter than the threshold, is not judged.
    """
    is_none = not kind.control and truth.duration_ms is not None and truth.duration_ms < THRESHOLD_MS
    if is_none or (kind.control and disturbed):
        return Score()
    if kind.control:
        return Score(false_alarms=sum(not report.excused for report in reports))
    about = [report for report in reports if _is_about(report, truth, truth_began_wall_ns)]
    places = (*kind.culprits, *(() if _names_one(about) else kind.holders))
    line = any(_names(report, kind, places, lines=True) for report in about) if places else None
    error = None if disturbed or kind.about else _duration_error_ms(about, truth)
    causes = {cause for report in about for cause in report.causes}
    machines = any(_is_the_machines(report) for report in about)
    known = not disturbed or any(report.queued is not None for report in about)
    return Score(
        detected=bool(about),
        function=any(_names(report, kind, places) for report in about) if places else None,
        line=line,
        cause=machines or bool(causes.intersection(kind.causes)) if known else None,
        best=machines or kind.causes[0] in causes if known else None,
        holder=_holder_named(about, kind) if kind.holders and known and not machines else None,
        duration_error_ms=error,
        duration_right=_is_close(error, truth.duration_ms)
        if truth.duration_ms and not (disturbed or kind.about)
        else None,
        survived=line if kind.killed else None,
        bug=next((report.bug for report in about if report.bug), None) if known and not machines else None,
        advice=_is_applicable(kind, about) if not machines else None,
    )


def _is_about(report: Report, truth: Truth, truth_began_wall_ns: int) -> bool:
    length_ns = truth.ended_ns - truth.began_ns if truth.ended_ns else 3600 * 10**9
    if report.began_ns is not None and report.duration_ms is not None:
        begin = report.began_ns - truth_began_wall_ns
        shared = min(begin + report.duration_ms * 1e6, length_ns) - max(begin, 0)
        return shared >= min(length_ns, report.duration_ms * 1e6) / 2
    if report.told_ns is not None:
        return 0 <= report.told_ns - truth.began_ns <= length_ns + TOLD_LATE_NS
    return True


def _names_one(reports: Sequence[Report]) -> bool:
    """Whether the watcher tells culprit and holder apart."""
    return any(report.holder is not None for report in reports)


def _names(report: Report, kind: Kind, places: Sequence[Place], *, lines: bool = False) -> bool:
    return any(_is_at(frame, kind, places, lines=lines) for frame in report.frames)


def _is_at(frame: Frame, kind: Kind, places: Sequence[Place], *, lines: bool) -> bool:
    if frame.file and not same_file(frame.file, str(kind.path)):
        return False
    for place in places:
        if frame.function.rpartition(".")[2] == place.function and (not lines or frame.line in place.lines):
            return True
    return False


def _holder_named(reports: Sequence[Report], kind: Kind) -> bool:
    return any(
        report.holder is not None
        and _is_at(report.holder, kind, kind.holders, lines=False)
        and report.thread in kind.threads
        for report in reports
    )


def _is_the_machines(report: Report) -> bool:
    return "host" in report.causes and report.queued is not None and report.queued > MACHINES


def _is_applicable(kind: Kind, reports: Sequence[Report]) -> bool | None:
    """None where there is no advice."""
    for report in reports:
        if report.advice:
            culprit = next(iter(report.frames), Frame("", ""))
            function = culprit.function.rpartition(".")[2]
            source, file = kind.path.read_text(), kind.path.name
            fits = not kind.advice or any(word in report.advice for word in kind.advice)
            return fits and not advice.objection(report.advice, source, file, function, culprit.line)
    return None


def _duration_error_ms(reports: Sequence[Report], truth: Truth) -> float | None:
    if truth.duration_ms is None:
        return None
    told = [report.duration_ms for report in reports if report.duration_ms is not None]
    return min((abs(one - truth.duration_ms) for one in told), default=None)


def _is_close(error_ms: float | None, duration_ms: float) -> bool | None:
    """None where the watcher tells no duration."""
    return None if error_ms is None else error_ms <= max(ABSOLUTE_MS, RELATIVE * duration_ms)
