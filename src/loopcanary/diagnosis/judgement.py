"""Judges a stall: gathers what the parts of the diagnosis find. Tells which stalls are not reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from loopcanary.diagnosis.advice import Setting, advise, registered
from loopcanary.diagnosis.case import StallCase, open_case, thread_names
from loopcanary.diagnosis.causes.host import wait_sentences
from loopcanary.diagnosis.causes.verdict import Verdict, judge, no_sample, rules
from loopcanary.diagnosis.causes.waits import Polling, find_polling
from loopcanary.diagnosis.circumstances import find_setting
from loopcanary.diagnosis.code.frame_table import FrameTable
from loopcanary.diagnosis.code.ownership import CodePaths, Ownership, absolute, captured, module_name
from loopcanary.diagnosis.culprit.circles import Circle, circle_sentences, find_circle
from loopcanary.diagnosis.culprit.first_use import tell_first_use
from loopcanary.diagnosis.culprit.suspect import (
    Suspect,
    blamed_stacks,
    find_blocker,
    find_portions,
    find_suspect,
    to_culprit,
)
from loopcanary.diagnosis.fingerprint import fingerprint
from loopcanary.diagnosis.samples.marks import main_target
from loopcanary.diagnosis.samples.views import SampleView, WeighedSample
from loopcanary.diagnosis.samples.weights import (
    MergedStacks,
    merge_stacks,
)
from loopcanary.diagnosis.state_word import state_word_of
from loopcanary.diagnosis.timeline import make_timeline
from loopcanary.diagnosis.title import make_title
from loopcanary.model import (
    Blocker,
    Cause,
    Clock,
    Config,
    Culprit,
    Grade,
    Holder,
    Session,
    Stall,
    StallEvidence,
    StallState,
    Target,
    ThreadStack,
    ThreadView,
)
from loopcanary.model.stall import is_own_thread, severity_of
from loopcanary.source_text import FileSources, SourceReader
from loopcanary.words.sentences import Sentence, say

_FILE_SOURCES = FileSources()
_THIN_COVERAGE = 0.5
_THREAD = "thread"
"""The kind of lanes that have no loop: their first turn does not start one."""
_LATE_NS = 5_000_000
_AS_THEY_CAME = ("scope", "threshold_ns", "scene", "queue_ns", "engine", "contributors", "killed_by")
"""Fields of the evidence that the stall has, too."""
_STRUCK_SHARE = 0.25
"""Of a wait for the GIL, what a package's line must hold to be named as what waited."""


def diagnose(
    evidence: StallEvidence,
    session: Session,
    config: Config,
    clock: Clock,
    *,
    state: StallState,
    sources: SourceReader = _FILE_SOURCES,
    paths: CodePaths | None = None,
) -> Stall:
    """Judges one stall.

    `clock`: of the watched process. `paths`: where its code lies; None: as in this process. Raises
    nothing for any evidence a reader can produce. Takes 2 to 6 ms for 300 samples, by how many stacks differ;
    one thread at a time may use the same `sources`.
    """
    case = open_case(evidence, session, config, sources, paths or captured())
    verdict = judge(case.observation, rules(), case.coverage)
    stall = _to_stall(case, verdict, session, clock, state)
    return replace(stall, fingerprint=fingerprint(stall, case.paths))


def _to_stall(case: StallCase, verdict: Verdict, session: Session, clock: Clock, state: StallState) -> Stall:
    suspect, holders, merged = _suspect(case, verdict), _holders(verdict), _merge(case)
    verdict = tell_first_use(case, verdict, suspect)
    evidence, observation, first, second = case.evidence, case.observation, verdict.first, verdict.second
    culprit = None if suspect is None else to_culprit(suspect, observation.sites)
    blocker = None if suspect is None else find_blocker(suspect, observation.sites, verdict.cause)
    holder = holders[0] if holders else None
    polling, circle = find_polling(observation, verdict, suspect, blocker), find_circle(observation)
    setting = find_setting(case, verdict, suspect, blocker, polling)
    if circle is not None:
        setting = replace(setting, topic=circle.topic)
    return Stall(
        **_seen(case, session, clock),
        fingerprint="",
        title=make_title(evidence, first, culprit, blocker, holders, polling=polling, circle=circle),
        state=state,
        cause=verdict.cause,
        confidence=verdict.confidence,
        evidence=(*_circled(circle), *_sentences(case, verdict), *_polled(polling)),
        advice=_advice(verdict, blocker, setting),
        culprit=culprit,
        blocker=blocker,
        holder=holder,
        ledger=observation.ledger,
        stacks=merged.shown,
        cause_share=1.0 if first is None else round(min(1.0, first.share), 4),
        second_cause=None if second is None else second.cause,
        second_share=0.0 if second is None else round(min(1.0, second.share), 4),
        portions=find_portions(observation, verdict, suspect),
        grade=make_grade(case.placed_ns, case.coverage, verdict.cause, sampled=bool(evidence.samples)),
        holders=holders,
        waited_on=_waited_on(verdict),
        surroundings=observation.surroundings,
        timeline=make_timeline(observation, case.weights, merged.numbers),
        state_word=state_word_of(observation, verdict),
    )


def _advice(verdict: Verdict, blocker: Blocker | None, setting: Setting) -> str | None:
    """What helps against the cause; and against garbage collection that took more of the time."""
    advice, first, second = advise(verdict.cause, blocker, setting), verdict.first, verdict.second
    if first is None or second is None or second.cause is not Cause.GC or second.share <= first.share:
        return advice
    less = advise(Cause.GC, None, replace(setting, topic=second.topic))
    return say("both", first=advice, second=less) if advice and less and less != advice else advice or less


def _seen(case: StallCase, session: Session, clock: Clock) -> dict[str, Any]:
    """Facts of the stall that do not depend on the verdict."""
    evidence, names = case.evidence, case.evidence.names
    return {
        "id": f"{session.id}-{evidence.serial}",
        "session": session.id,
        "pid": session.pid,
        "thread": evidence.thread_name or f"thread {evidence.tid}",
        "loop": evidence.loop_kind,
        "severity": severity_of(case.weights.duration_ns),
        "began_wall_ns": clock.to_wall_ns(evidence.begin_ns),
        "duration_ns": case.weights.duration_ns,
        "callback": None if names is None else names.name,
        "task": None if names is None else names.task,
        "samples": len(evidence.samples),
        "coverage": round(case.coverage, 4),
        "dropped_samples": sum(count for _, count in evidence.samples_dropped),
        "threads": _other_threads(evidence, case),
        "startup": evidence.first_turn and evidence.loop_kind != _THREAD,
        **{name: getattr(evidence, name) for name in _AS_THEY_CAME},
    }


def _suspect(case: StallCase, verdict: Verdict) -> Suspect | None:
    """The culprit of the samples that speak for the cause, so that both belong together; of all samples if
    the cause is not about a line, or none of these has a stack. No line is to blame for what loopcanary
    did."""
    first = verdict.first
    if first is not None and any(holder.is_ours for holder in first.holders):
        return None
    samples: tuple[WeighedSample, ...] = case.observation.seen
    if first is not None and first.explained and not first.blameless and first.cause is not Cause.UNKNOWN:
        samples = first.explained
    stacks = blamed_stacks(samples) or blamed_stacks(case.observation.seen)
    suspect = find_suspect(stacks)
    if suspect is None or suspect.in_app or verdict.cause is not Cause.GIL:
        return suspect
    # A thread that takes the GIL strikes the code that runs next. If the turn mostly waited in the loop's own
    # lines, the few samples in a package's code say nothing.
    return suspect if suspect.weight_ns >= _STRUCK_SHARE * sum(weight for _, weight in stacks) else None


def _holders(verdict: Verdict) -> tuple[Holder, ...]:
    findings = (verdict.first, verdict.second)
    return next((finding.holders for finding in findings if finding is not None and finding.holders), ())


def _waited_on(verdict: Verdict) -> Target | None:
    for finding in (verdict.first, verdict.second):
        target = None if finding is None else main_target(finding.explained)
        if target is not None:
            return target
    return None


def _sentences(case: StallCase, verdict: Verdict) -> tuple[str, ...]:
    """The verdict's sentences, then what holds for any cause."""
    evidence, sentences = case.evidence, list(verdict.evidence)
    if evidence.fault is None:
        sentences += [one for one in wait_sentences(case.observation) if one not in sentences]
    missing = no_sample(case.observation) if not evidence.samples else None
    if missing is not None and missing not in sentences:
        sentences.append(missing)
    if evidence.samples and case.coverage < _THIN_COVERAGE and evidence.fault is None:
        sentences.append(say("thin", seen=sum(case.placed_ns), whole=case.weights.duration_ns))
    if evidence.queue_ns >= max(_LATE_NS, evidence.threshold_ns // 10):
        sentences.append(say("late", late=evidence.queue_ns))
    if evidence.allowance_ns > evidence.threshold_ns:
        sentences.append(say("granted", granted=evidence.allowance_ns))
    if evidence.first_turn and evidence.loop_kind != _THREAD:
        sentences.append(say("starting"))
    if evidence.tasks:
        left = evidence.task_count - len(evidence.tasks)
        tasks = [*evidence.tasks, *([say("more", count=left)] if left > 0 else [])]
        sentences.append(say("tasks", count=evidence.task_count, tasks=tasks))
    return tuple(sentences)


def _polled(polling: Polling | None) -> Iterator[Sentence]:
    if polling is not None:
        line = None if polling.loop_line is None else str(polling.loop_line)
        yield say("in-a-row", count=polling.count, call=polling.call, line=line)


def _circled(circle: Circle | None) -> Iterator[Sentence]:
    if circle is not None:
        yield from circle_sentences(circle)


def _merge(case: StallCase) -> MergedStacks:
    """The different stacks as reports show them: those that differ only in their depth are one."""
    held: dict[SampleView, int] = {}
    for seen, weight_ns in zip(case.observation.seen, case.weights.weights_ns, strict=True):
        view = seen.view
        held[view] = held.get(view, 0) + weight_ns
    return merge_stacks((view.stack, weight, view.truncated) for view, weight in held.items() if view.stack)


def _other_threads(evidence: StallEvidence, case: StallCase) -> tuple[ThreadView, ...]:
    """All threads but our own drain, which the program cannot see either."""
    names = thread_names(evidence)
    return tuple(
        view_thread(thread, names.get(thread.tid, ""), case.table)
        for thread in evidence.threads
        if not is_own_thread(names.get(thread.tid, ""))
    )


def view_thread(thread: ThreadStack, name: str, table: FrameTable) -> ThreadView:
    frames = () if thread.stack is None else table.place(thread.stack).shown.frames
    return ThreadView(
        tid=thread.tid,
        name=name,
        state=thread.thread_state,
        holds_gil=thread.holds_gil,
        waits_for_gil=thread.waits_for_gil,
        frames=frames,
    )


def prepare() -> None:
    """Loads the registered rules and remedies, and the figures, which the first verdict or the end of the
    program would load else."""
    import_module("loopcanary.diagnosis.health")
    rules()
    registered()


def not_intercepted(stall: Stall) -> Stall:
    """The stall, marked: the program's own code wanted to see it, and another process has judged it."""
    return replace(stall, evidence=(*stall.evidence, say("not-intercepted")))


_STRONG_SAMPLES = 8
_STRONG_COVERAGE = 0.7
_STRONG_HEAVIEST = 0.34
_WEAK_COVERAGE = 0.3
_WEAK_HEAVIEST = 0.9


def make_grade(seen_ns: Sequence[int], coverage: float, cause: Cause, *, sampled: bool) -> Grade:
    """Strong: eight samples and more, over 70 % of the stall, none of which carries a third. Weak: one
    sample carries all, or most of the stall was not seen. `seen_ns`: the time each sample with a stack stands
    for; `coverage`: their share; `sampled`: there are samples, with a stack or without.

    Without any sample, a cause that is known rests on records of the thread itself: fair.
    """
    if not seen_ns:
        return Grade.WEAK if sampled or cause is Cause.UNKNOWN else Grade.FAIR
    total = sum(seen_ns)
    heaviest = max(seen_ns) / total if total > 0 else 1.0 / len(seen_ns)
    if len(seen_ns) == 1 or heaviest >= _WEAK_HEAVIEST or coverage < _WEAK_COVERAGE:
        return Grade.WEAK
    many = len(seen_ns) >= _STRONG_SAMPLES
    if many and coverage >= _STRONG_COVERAGE and heaviest <= _STRONG_HEAVIEST:
        return Grade.STRONG
    return Grade.FAIR


_MEANT = frozenset({"jupyter_client.channels:HBChannel._async_run"})
"""What a package runs on a loop and a thread of its own, and lets block them: nothing else waits there."""


def is_meant(stall: Stall, paths: CodePaths) -> bool:
    """Whether a stall is what a package means to do: it is neither stored nor reported."""
    culprit = stall.culprit
    return culprit is not None and f"{module_name(culprit.file, paths)}:{culprit.qualname}" in _MEANT


def drop_reason(stall: Stall, config: Config, paths: CodePaths) -> str | None:
    """Why a stall is not reported. Without `delete_ignored` it is stored all the same.

    Args:
        stall: With its culprit.
        config: Has `only_concern` and `ignore`.
        paths: Of the stall's process: which file is which module.

    Returns:
        `only_concern`, or `ignore: ` and the entry that matched; None: it is reported.
    """
    if config.only_concern and not _touches_own_code(stall):
        return "only_concern"
    if stall.culprit is None:
        return None
    for entry in config.ignore:
        if _matches(entry, stall.culprit, paths):
            return f"ignore: {entry}"
    return None


def _touches_own_code(stall: Stall) -> bool:
    holder = stall.holder.culprit if stall.holder is not None else None
    return any(culprit is not None and culprit.in_app for culprit in (stall.culprit, holder))


def _matches(entry: str, culprit: Culprit, paths: CodePaths) -> bool:
    if "/" in entry or entry.endswith(".py"):
        return _matches_glob(entry, absolute(culprit.file, paths))
    module, _, function = entry.partition(":")
    if function:
        return _is_module(module, culprit, paths) and function in (culprit.qualname, culprit.function)
    return Ownership(paths).is_in(culprit.file, (f"/{entry.replace('.', '/')}",))


def _matches_glob(pattern: str, path: str) -> bool:
    """A pattern that does not begin at the root matches below any folder."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern.removeprefix('./')}")


def _is_module(module: str, culprit: Culprit, paths: CodePaths) -> bool:
    name = module_name(culprit.file, paths)
    return name == module or name.endswith(f".{module}")
