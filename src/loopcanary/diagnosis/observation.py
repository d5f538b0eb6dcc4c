"""What the rules of the causes look at: the samples of a stall with their weight, place and system call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from loopcanary.diagnosis.calls import NO_SITE, CallSite, CallSites
from loopcanary.diagnosis.frames import NO_STACK, Placed, PlacedFrame, PlacedStack
from loopcanary.diagnosis.syscalls import syscall_name
from loopcanary.model import Ledger, Sample, Stack, StallEvidence, Surroundings


@dataclass(slots=True, kw_only=True, eq=False)
class Seen:
    """One sample, with what follows from it alone, and from its neighbours. Nobody changes it; it is not
    frozen since making hundreds of them would take three times as long."""

    sample: Sample
    weight_ns: int
    """The seen time that it stands for: what nobody looked at has no vote."""
    kind: int
    """Number of the kind of sample. Of one kind are all that differ only in time, weight and counters, in
    where exactly the innermost function made the same call, and in the frames that called that function (what
    roles these have is the same)."""
    stack: PlacedStack
    syscall: str | None
    """Name of the system call it slept in; a number without a name as `system call 999`."""
    state: str
    """The kernel's letter for the thread; empty where unknown."""
    on_cpu: bool | None
    """Whether the thread ran; None: not known."""
    waits_unseen: bool
    """Whether it may sleep in a call that the kernel did not name: frames and text must tell."""
    cpu_share: float | None
    """Of the time around it, the share that it spent on a CPU; None: not measured."""

    @property
    def placed(self) -> Placed:
        """All frames, innermost first."""
        return self.stack.frames

    @property
    def work(self) -> Placed:
        """The frames of the work: those inside the loop's own."""
        return self.stack.work

    @property
    def innermost(self) -> PlacedFrame | None:
        """The frame that was running; None without a stack."""
        return self.stack.frames[0] if self.stack.frames else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """A stall as the rules see it. `seen` shrinks from rule to rule: what one has explained, the next
    does not see."""

    evidence: StallEvidence
    duration_ns: int
    seen: tuple[Seen, ...]
    kinds: tuple[Seen, ...]
    """One of each kind in `seen`."""
    total_ns: int
    """Weight of all samples, also of those already explained."""
    sample_count: int
    """Likewise, their number."""
    ledger: Ledger
    frozen_ns: int = 0
    """Of `total_ns`: time in gaps, in which neither watchdog nor thread ran."""
    surroundings: Surroundings | None = None
    sites: CallSites
    place: Callable[[Stack], PlacedStack]
    """Places any other stack, such as that of the thread that held the GIL."""
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
        """The samples not yet explained whose kind `accepts`. It is asked once for each kind, so it must
        not look at times, weights and counters, nor at outer frames; `select_each` is for those."""
        chosen = {seen.kind for seen in self.kinds if accepts(seen)}
        if not chosen:
            return ()
        if len(chosen) == len(self.kinds):
            return self.seen
        return tuple([seen for seen in self.seen if seen.kind in chosen])

    def select_each(self, accepts: Callable[[Seen], bool]) -> tuple[Seen, ...]:
        """The samples not yet explained that `accepts`, each asked about."""
        return tuple([seen for seen in self.seen if accepts(seen)])

    def without(self, explained: Iterable[Seen]) -> Observation:
        """The same with these samples taken out."""
        gone = set(map(id, explained))
        if not gone:
            return self
        left = tuple([seen for seen in self.seen if id(seen) not in gone])
        return replace(self, seen=left, kinds=one_of_each(left))

    def of_all(self, selected: Iterable[Seen]) -> str:
        """A count for a sentence: `9 of 12 samples`."""
        count = len(tuple(selected))
        noun = "sample" if self.sample_count == 1 else "samples"
        return f"{count} of {self.sample_count} {noun}"


def weigh_stacks(samples: Iterable[Seen]) -> list[tuple[PlacedStack, int]]:
    """Each distinct stack that could be read, with the weight of its samples."""
    held: dict[PlacedStack, int] = {}
    for seen in samples:
        held[seen.stack] = held.get(seen.stack, 0) + seen.weight_ns
    return [(stack, weight) for stack, weight in held.items() if stack.frames]


def one_of_each(seen: Iterable[Seen]) -> tuple[Seen, ...]:
    """One sample of each kind."""
    return tuple({entry.kind: entry for entry in seen}.values())


def see(
    samples: tuple[Sample, ...],
    weights_ns: tuple[int, ...],
    place: Callable[[Stack], PlacedStack],
    sites: CallSites,
    machine: str,
) -> tuple[Seen, ...]:
    """Makes the samples ready for the rules."""
    kinds: dict[tuple[object, ...], int] = {}
    names: dict[int | None, str | None] = {None: None}
    calls: dict[PlacedFrame, tuple[object, ...]] = {}
    times = [sample.at_ns for sample in samples]
    spent = [None if sample.kernel is None else sample.kernel.on_cpu_ns for sample in samples]
    seen: list[Seen] = []
    for index, sample in enumerate(samples):
        kernel, read = sample.kernel, sample.stack
        stack = NO_STACK if read is None else place(read)
        if kernel is None:
            state, number, args = "", None, None
        else:
            state, number, args = kernel.thread_state, kernel.syscall, kernel.syscall_args
        share = _cpu_share(times, spent, index) if state in _MAY_RUN else None
        on_cpu = state == "R" if state else _on_cpu(number, share)
        call = None
        if stack.frames:
            call = calls.get(stack.frames[0]) or calls.setdefault(stack.frames[0], _call(stack, sites))
        key = (
            call,
            stack.path.roles,
            read is None or read.inner_cut,
            state,
            number,
            args,
            on_cpu,
            # The member of an enum by identity: it hashes by calling Python.
            id(sample.gil),
            sample.waits_for_gil,
            sample.in_gc,
            sample.target,
            sample.lock,
        )
        if number not in names:
            names[number] = syscall_name(number, machine) or f"system call {number}"
        seen.append(
            Seen(
                sample=sample,
                weight_ns=weights_ns[index],
                kind=kinds.setdefault(key, len(kinds)),
                stack=stack,
                syscall=names[number],
                state=state,
                on_cpu=on_cpu,
                waits_unseen=number is None and not on_cpu and state not in _STOPPED,
                cpu_share=share,
            )
        )
    return tuple(seen)


def _call(stack: PlacedStack, sites: CallSites) -> tuple[object, ...]:
    """What rules ask of the innermost frame: its function, and what that calls; the text itself only where
    it is no call, but may take a lock."""
    view = stack.frames[0]
    site = sites.of(view)
    entered = site.callee is None and site.source is not None and site.source.startswith("with ")
    return view.function, site.callee, site.text if entered else None


_STOPPED = ("T", "t")
_MAY_RUN = ("R", "")
_RUNNING_SHARE = 0.5


def _on_cpu(syscall: int | None, cpu_share: float | None) -> bool | None:
    """Where the kernel gave no state. (R also means ready to run; the rule for `host` tells the two apart by
    the CPU clock.)"""
    if syscall is not None:
        return False
    return None if cpu_share is None else cpu_share >= _RUNNING_SHARE


_CPU_WINDOW_NS = 16_000_000
"""The kernel adds to a running thread's CPU time at its ticks, 1 to 10 ms apart: over less time than this,
a share says nothing."""


def _cpu_share(times: list[int], spent: list[int | None], index: int) -> float | None:
    """Of one sample, CPU time over wall time between samples before and after it, far enough apart."""
    last = len(times) - 1
    left, right = (index - 1 if index else 0), (index + 1 if index < last else last)
    while times[right] - times[left] < _CPU_WINDOW_NS and (left > 0 or right < last):
        left, right = max(0, left - 1), min(last, right + 1)
    wall, before, after = times[right] - times[left], spent[left], spent[right]
    if wall < _CPU_WINDOW_NS or before is None or after is None:
        return None
    return (after - before) / wall
