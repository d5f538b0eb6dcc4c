"""From an Observation to a cause: every rule says what it can explain, the largest share wins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache

from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause, Holder
from loopcanary.registry import CAUSES, REGISTRY
from loopcanary.words.sentences import Sentence, say

SECOND_SHARE = 0.25
"""A second cause is named from this share on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """What one rule found."""

    cause: Cause
    share: float
    """The part of the stall's time that it explains, 0 to 1."""
    confidence: float
    """How sure it is where it applies, 0 to 1."""
    evidence: tuple[str, ...]
    """Sentences, made by `words.sentences.say`; a third party's may be plain text."""
    explained: tuple[WeighedSample, ...] = ()
    """The samples it speaks for; the rules after it do not see them."""
    holders: tuple[Holder, ...] = ()
    """Who held what the thread waited for, most time first."""
    title: str | None = None
    """What to call it, where the cause's own word says less: a key of words.titles, or text."""
    topic: str | None = None
    """What the advice is about, where that is more than the cause: the `topic` of a row of words.remedies."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Values for the places in that row's text."""
    blameless: bool = False
    """The cause strikes code by chance: no line is to blame."""
    decides: bool = False
    """It is the cause whatever the shares of the others, and the first one asked of such: a burst consists of
    other things."""
    yields: bool = False
    """It is not the cause where another explains most of the rest, or enough to be named."""


Rule = Callable[[Observation], Finding | None]
"""Looks at the samples not yet explained and at the records of the stall. Pure."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """The cause of a stall, with all that the rules found, the cause's own finding first."""

    cause: Cause
    confidence: float
    evidence: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    second: Finding | None = None

    @property
    def first(self) -> Finding | None:
        return self.findings[0] if self.findings else None


def judge(observation: Observation, rules: Sequence[Rule], coverage: float) -> Verdict:
    """Asks the rules in order; what one explains, the next does not see. The rule for `unknown` comes
    last and explains the rest, so that there is always a finding."""
    findings: list[Finding] = []
    left = observation
    for rule in rules:
        finding = rule(left)
        if finding is not None:
            findings.append(finding)
            left = left.without(finding.explained)
            if finding.cause is Cause.CRASH:
                break  # what came before did not end the process
    findings = _without_overlap(findings)
    ranked = sorted(findings, key=lambda finding: 2.0 if finding.decides else finding.share, reverse=True)
    if not ranked:
        return Verdict(cause=Cause.UNKNOWN, confidence=0.0, evidence=(say("no-rule"),))
    heir = next((finding for finding in ranked if not finding.yields), None)
    if heir is not None and ranked[0].yields and _explains_the_rest(heir, ranked, observation):
        ranked.remove(heir)
        ranked.insert(0, heir)
    first, rest = ranked[0], ranked[1:]
    second = next((finding for finding in rest if finding.share >= SECOND_SHARE), None)
    sentences = first.evidence
    if second is not None:
        sentences += (say("also", cause=second.cause.value, share=second.share), *second.evidence)
    return Verdict(
        cause=first.cause,
        confidence=_confidence(first, coverage, sampled=observation.sample_count > 0),
        evidence=sentences,
        findings=tuple(ranked),
        second=second,
    )


def _without_overlap(findings: Sequence[Finding]) -> list[Finding]:
    """Shares that add up to the stall at most: the host has what the kernel measured, a sample stands for the
    time around it, and the same time may be in both."""
    left = 1.0 - max((finding.share for finding in findings if finding.cause is Cause.HOST), default=0.0)
    return [
        finding
        if finding.cause is Cause.HOST or finding.decides or finding.share <= left
        else replace(finding, share=left)
        for finding in findings
    ]


def _explains_the_rest(finding: Finding, ranked: Sequence[Finding], observation: Observation) -> bool:
    """Whether it would be the cause, and of a stall, if what yields had not been."""
    rest = 1.0 - sum(other.share for other in ranked if other.yields)
    return (
        finding.cause is not Cause.UNKNOWN
        and finding.share >= min(SECOND_SHARE, rest / 2) > 0
        and finding.share * observation.duration_ns > observation.evidence.threshold_ns
    )


def _confidence(finding: Finding, coverage: float, *, sampled: bool) -> float:
    """The rule's own confidence; less where it explains a part only, or little of the stall was seen. A
    crash has no duration to be sure of."""
    if finding.cause is Cause.CRASH:
        return finding.confidence
    seen = 0.5 + 0.5 * min(1.0, coverage) if sampled and finding.explained else 1.0
    return round(finding.confidence * (0.5 + 0.5 * min(1.0, finding.share)) * seen, 2)


_DROPS = ("moved", "unreadable", "full")


def find_unknown(observation: Observation) -> Finding | None:
    """Explains all samples that no rule before explains. It is asked last."""
    if not observation.sample_count:
        return Finding(cause=Cause.UNKNOWN, share=0.0, confidence=0.0, evidence=(no_sample(observation),))
    if not observation.seen:
        return None
    counts = Counter(_missing(seen) for seen in observation.seen)
    return Finding(
        cause=Cause.UNKNOWN,
        share=observation.share(observation.seen),
        confidence=0.0,
        evidence=tuple(
            say(
                "unexplained", some=say("samples", count=count, whole=observation.sample_count), reason=reason
            )
            for reason, count in counts.most_common(3)
        ),
        explained=observation.seen,
    )


def _missing(seen: WeighedSample) -> Sentence:
    if seen.sample.kernel is None:
        return say("no-kernel")
    if seen.syscall is not None:
        return say("slept-unknown", call=seen.syscall)
    if seen.on_cpu:
        return say("glimpse")
    if not seen.stack:
        return say("no-stack")
    return say("no-call", state=seen.state) if seen.state else say("no-state")


def no_sample(observation: Observation) -> Sentence:
    """Why there is a stall without a sample, as far as it is known."""
    evidence = observation.evidence
    drops = [
        say(f"drop-{reason}" if reason in _DROPS else "drop-other", count=count, reason=reason)
        for reason, count in evidence.samples_dropped
        if count
    ]
    if drops:
        return say("all-dropped", drops=drops)
    return say("no-look" if evidence.end_ns is None else "no-watchdog", lasted=observation.duration_ns)


STACK_OVER = "stack-over"


def find_crash(observation: Observation) -> Finding | None:
    """By the signal that the thread's own code caused. It is the cause, whatever the thread did before: the
    last look tells where it was."""
    fault = observation.evidence.fault
    if fault is None:
        return None
    return Finding(
        cause=Cause.CRASH,
        share=1.0,
        confidence=1.0,
        evidence=(say("faulted-stack-over" if fault.is_stack_over else "faulted", signal=fault.signal),),
        explained=tuple([seen for seen in observation.seen if seen.stack][-1:]),
        topic=STACK_OVER if fault.is_stack_over else None,
        decides=True,
    )


@cache
def rules() -> tuple[Rule, ...]:
    """All that are registered: third parties' first, as the last built-in one explains all that is left."""
    built_in: list[Rule] = []
    others: list[Rule] = []
    for one, rule in REGISTRY.loaded(CAUSES):
        if one.is_built_in:
            built_in.append(rule)
        else:
            others.append(_contained(one.name, rule))
    return (*others, *built_in)


def _contained(name: str, rule: Rule) -> Rule:
    """The rule, which is not asked again once it has raised."""
    is_on = True

    def ask(observation: Observation) -> Finding | None:
        nonlocal is_on
        try:
            return rule(observation) if is_on else None
        except Exception as error:  # noqa: BLE001 - a third party's; the stall is judged without it
            is_on = False
            REGISTRY.failed(f"cause {name}", error)
            return None

    return ask
