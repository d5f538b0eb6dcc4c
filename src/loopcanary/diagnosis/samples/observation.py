"""A stall as the rules of the causes see it: what each explains, the next does not see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace

from loopcanary.diagnosis.code.call_sites import NO_SITE, CallSite, CallSites
from loopcanary.diagnosis.code.stack_frames import PlacedStack
from loopcanary.diagnosis.samples.views import WeighedSample, one_of_each
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Ledger, PriorityChange, Stack, StallEvidence, Surroundings
from loopcanary.words.sentences import Sentence, say

_MORE_THAN_A_GLIMPSE = 5
_GLIMPSE_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """A stall as the rules see it. `seen` shrinks from rule to rule: what one has explained, the next
    does not see."""

    evidence: StallEvidence
    duration_ns: int
    seen: tuple[WeighedSample, ...]
    kinds: tuple[WeighedSample, ...]
    """One of each kind in `seen`."""
    total_ns: int
    """Weight of all samples, also of those already explained."""
    sample_count: int
    """The number of all samples, also of those already explained."""
    ledger: Ledger
    frozen_ns: int = 0
    """Of `total_ns`: time in gaps, in which neither watchdog nor thread ran."""
    surroundings: Surroundings | None = None
    sites: CallSites
    place: Callable[[Stack], PlacedStack]
    """Places any other stack, such as that of the thread that held the GIL."""
    place_outer: Callable[[Stack, int], PlacedStack]
    """Places that many of a stack's outer frames."""
    priority_changes: tuple[PriorityChange, ...] = ()
    """What the program did to how the stalled thread is scheduled."""
    cores: int = 0
    """On how many the process could run when it began; 0: not known."""
    threads: dict[int, str] = field(default_factory=dict)

    def site(self, seen: WeighedSample) -> CallSite:
        """Where the innermost frame was.

        Args:
            seen: One of `seen`.

        Returns:
            What it called, as the source has it; NO_SITE without a stack.
        """
        stack = seen.view.stack
        return self.sites.of(stack.at(0)) if stack else NO_SITE

    def callee(self, seen: WeighedSample) -> str | None:
        """Dotted name of what the innermost frame called, as written."""
        return self.site(seen).callee

    def share(self, selected: Iterable[WeighedSample]) -> float:
        """Part of the stall's sampled time that samples stand for, 0 to 1."""
        weights = [seen.weight_ns for seen in selected]
        if self.total_ns > 0:
            return sum(weights) / self.total_ns
        return len(weights) / self.sample_count if self.sample_count else 0.0

    def is_glimpse(self, selected: Sequence[WeighedSample]) -> bool:
        """Whether samples are so few, and cover so little of the stall, that they say nothing about the rest:
        the thread may have slept then."""
        seen_ns = sum([seen.weight_ns for seen in selected])
        return len(selected) < _MORE_THAN_A_GLIMPSE and seen_ns < _GLIMPSE_SHARE * self.duration_ns

    def select(self, accepts: Callable[[WeighedSample], bool]) -> tuple[WeighedSample, ...]:
        """The samples not yet explained of some kinds; samples are of one kind if they saw the same.

        Args:
            accepts: Asked once for each kind, by one sample of it. It must not look at times, weights,
                counters or outer frames: `select_each` is for those.

        Returns:
            In order of time.
        """
        chosen = {seen.kind for seen in self.kinds if accepts(seen)}
        if not chosen:
            return ()
        if len(chosen) == len(self.kinds):
            return self.seen
        return tuple([seen for seen in self.seen if seen.view.kind in chosen])

    def select_each(self, accepts: Callable[[WeighedSample], bool]) -> tuple[WeighedSample, ...]:
        """The samples not yet explained that `accepts`, each asked about."""
        return tuple([seen for seen in self.seen if accepts(seen)])

    def without(self, explained: Iterable[WeighedSample]) -> Observation:
        """The same with these samples taken out."""
        gone = set(map(id, explained)) if explained is not self.seen else None
        if gone is not None and not gone:
            return self
        left = () if gone is None else tuple([seen for seen in self.seen if id(seen) not in gone])
        return replace(self, seen=left, kinds=one_of_each(left))

    def of_all(self, selected: Iterable[WeighedSample]) -> Sentence:
        """A count for a sentence: `9 of 12 samples`."""
        return say("samples", count=len(tuple(selected)), whole=self.sample_count)
