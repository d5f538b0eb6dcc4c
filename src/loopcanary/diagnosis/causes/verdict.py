"""From an Observation to a cause: every rule says what it can explain, the largest share wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause, Holder
from loopcanary.words.sentences import say

SECOND_SHARE = 0.25
"""A second cause is named from this share on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """What one rule found."""

    cause: Cause
    share: float
    """Of the stall's time that it explains, 0 to 1."""
    confidence: float
    """That it is right where it applies, 0 to 1."""
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
    blameless: bool = False
    """It strikes code by chance: no line is to blame."""
    decides: bool = False
    """It is the cause whatever the shares of the others: a burst consists of other things."""
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
    ranked = sorted(findings, key=lambda finding: (not finding.decides, -finding.share))
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
    crash is no matter of time."""
    if finding.cause is Cause.CRASH:
        return finding.confidence
    seen = 0.5 + 0.5 * min(1.0, coverage) if sampled and finding.explained else 1.0
    return round(finding.confidence * (0.5 + 0.5 * min(1.0, finding.share)) * seen, 2)
