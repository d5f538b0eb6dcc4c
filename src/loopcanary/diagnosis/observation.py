"""What the rules of the causes look at: the samples of a stall with their weight, place and system call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from loopcanary.diagnosis.calls import NO_SITE, CallSite, CallSites
from loopcanary.diagnosis.culprit import Suspect
from loopcanary.diagnosis.frames import Placed, PlacedFrame
from loopcanary.diagnosis.syscalls import syscall_name
from loopcanary.model import Ledger, Sample, Stack, StallEvidence


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """One sample, with what follows from it alone, and from its neighbours."""

    sample: Sample
    weight_ns: int
    placed: Placed
    """All frames, innermost first."""
    work: Placed
    """The frames of the work: those inside the loop's own."""
    syscall: str | None
    """Name of the system call it slept in; a number without a name as `system call 999`."""
    on_cpu: bool | None
    """Whether the thread ran; None: not known."""
    cpu_share: float | None = None
    """Of the time between the neighbouring samples, the share it spent on a CPU; None: not measured."""

    @property
    def innermost(self) -> PlacedFrame | None:
        """The frame that was running; None without a stack."""
        return self.placed[0] if self.placed else None

    @property
    def waits_unseen(self) -> bool:
        """Whether it may sleep in a call that the kernel did not name: frames and text must tell."""
        return self.syscall is None and not self.on_cpu and self.state not in ("T", "t")

    @property
    def state(self) -> str:
        """The kernel's letter for the thread; empty where unknown."""
        return self.sample.kernel.thread_state if self.sample.kernel is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """A stall as the rules see it. `seen` shrinks from rule to rule: what one has explained, the next
    does not see."""

    evidence: StallEvidence
    duration_ns: int
    seen: tuple[Seen, ...]
    total_ns: int
    """Weight of all samples, also of those already explained."""
    sample_count: int
    """Likewise, their number."""
    ledger: Ledger
    sites: CallSites
    place: Callable[[Stack], Placed]
    """Places any other stack, such as that of the thread that held the GIL."""
    suspect: Suspect | None = None
    threads: dict[int, str] = field(default_factory=dict)
    """Known names of threads by their id."""

    def site(self, seen: Seen) -> CallSite:
        """Where the innermost frame was."""
        return self.sites.of(seen.placed[0]) if seen.placed else NO_SITE

    def callee(self, seen: Seen) -> str | None:
        """Dotted name of what the innermost frame called, as written."""
        return self.site(seen).callee

    def share(self, selected: Iterable[Seen]) -> float:
        """Part of the stall's sampled time that samples stand for, 0 to 1."""
        if self.total_ns > 0:
            return sum(seen.weight_ns for seen in selected) / self.total_ns
        return len(list(selected)) / self.sample_count if self.sample_count else 0.0

    def select(self, accepts: Callable[[Seen], bool]) -> tuple[Seen, ...]:
        """The samples that are not yet explained and that `accepts`."""
        return tuple([seen for seen in self.seen if accepts(seen)])

    def without(self, explained: Iterable[Seen]) -> Observation:
        """The same with these samples taken out."""
        gone = set(map(id, explained))
        return replace(self, seen=tuple([seen for seen in self.seen if id(seen) not in gone]))

    def of_all(self, selected: Iterable[Seen]) -> str:
        """A count for a sentence: `9 of 12 samples`."""
        count = len(tuple(selected))
        noun = "sample" if self.sample_count == 1 else "samples"
        return f"{count} of {self.sample_count} {noun}"


def see(
    samples: tuple[Sample, ...],
    weights_ns: tuple[int, ...],
    place: Callable[[Stack], tuple[Placed, Placed]],
    machine: str,
) -> tuple[Seen, ...]:
    """Makes the samples ready for the rules. `place` gives a stack's frames: all, and those of the work."""
    shares = _cpu_shares(samples)
    return tuple(
        [
            _one(sample, weight_ns, place, machine, share)
            for sample, weight_ns, share in zip(samples, weights_ns, shares, strict=True)
        ]
    )


def _one(
    sample: Sample,
    weight_ns: int,
    place: Callable[[Stack], tuple[Placed, Placed]],
    machine: str,
    cpu_share: float | None,
) -> Seen:
    placed, work = place(sample.stack) if sample.stack is not None else ((), ())
    kernel = sample.kernel
    name = None
    if kernel is not None and kernel.syscall is not None:
        name = syscall_name(kernel.syscall, machine) or f"system call {kernel.syscall}"
    return Seen(
        sample=sample,
        weight_ns=weight_ns,
        placed=placed,
        work=work,
        syscall=name,
        on_cpu=_on_cpu(sample, name, cpu_share),
        cpu_share=cpu_share,
    )


_RUNNING_SHARE = 0.5


def _on_cpu(sample: Sample, syscall: str | None, cpu_share: float | None) -> bool | None:
    """R also means ready to run; the rule for `host` tells the two apart by the CPU clock."""
    kernel = sample.kernel
    if kernel is None:
        return None
    if kernel.thread_state:
        return kernel.thread_state == "R"
    if syscall is not None:
        return False
    return None if cpu_share is None else cpu_share >= _RUNNING_SHARE


def _cpu_shares(samples: tuple[Sample, ...]) -> list[float | None]:
    """For each sample, CPU time over wall time from the sample before to the one after."""
    shares: list[float | None] = []
    last = len(samples) - 1
    for index in range(len(samples)):
        left, right = samples[max(0, index - 1)], samples[min(last, index + 1)]
        wall = right.at_ns - left.at_ns
        if wall <= 0 or left.kernel is None or right.kernel is None:
            shares.append(None)
        else:
            shares.append((right.kernel.on_cpu_ns - left.kernel.on_cpu_ns) / wall)
    return shares
