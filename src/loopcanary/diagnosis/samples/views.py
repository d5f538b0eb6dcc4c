"""Samples as the rules see them: placed, weighed, with the name of the system call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter

from loopcanary.diagnosis.code.call_sites import CallSites
from loopcanary.diagnosis.code.ownership import Owner
from loopcanary.diagnosis.code.stack_frames import NO_STACK, Placed, PlacedFrame, PlacedStack
from loopcanary.diagnosis.samples.syscalls import syscall_name
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Sample, Stack


@dataclass(slots=True, kw_only=True, eq=False)
class SampleView:
    """What follows from a sample alone. Samples that differ in time, weight and counters only share one.

    Never changed; not frozen, since making hundreds would take three times as long."""

    kind: int
    """Number of the kind of sample, for `Observation.select`. Two samples of a kind have the same innermost
    call, the same roles of the frames around and the same facts of the kernel. They may differ in the line
    of that call, in its callers, and in which of the program's own functions it is."""
    stack: PlacedStack
    truncated: bool
    """Its outer frames were not read."""
    syscall: str | None
    """Name of the system call it slept in; a number without a name as `system call 999`."""
    state: str
    """The kernel's letter for the thread; empty where unknown."""
    on_cpu: bool | None
    """Whether the thread ran; None: not known."""
    waits_unseen: bool
    """Whether it may sleep in a call that the kernel did not name: frames and text must show it."""


@dataclass(slots=True, kw_only=True, eq=False)
class WeighedSample:
    """One sample, with what follows from it and from its neighbours. Never changed, as `SampleView`."""

    sample: Sample
    weight_ns: int
    """The seen time that it stands for; time without a look has no vote."""
    cpu_share: float | None
    """Of the time around it, the share that it spent on a CPU; None: not measured."""
    view: SampleView

    @property
    def kind(self) -> int:
        return self.view.kind

    @property
    def stack(self) -> PlacedStack:
        return self.view.stack

    @property
    def syscall(self) -> str | None:
        return self.view.syscall

    @property
    def state(self) -> str:
        return self.view.state

    @property
    def on_cpu(self) -> bool | None:
        return self.view.on_cpu

    @property
    def waits_unseen(self) -> bool:
        return self.view.waits_unseen

    @property
    def placed(self) -> Placed:
        """All frames, innermost first."""
        return self.view.stack.frames

    @property
    def work(self) -> Placed:
        """The frames of the work: those inside the loop's own."""
        return self.view.stack.work

    @property
    def innermost(self) -> PlacedFrame | None:
        """The frame that was running; None without a stack."""
        stack = self.view.stack
        return stack.at(0) if stack else None


def weigh_stacks(samples: Iterable[WeighedSample]) -> list[tuple[PlacedStack, int]]:
    """Each distinct stack that could be read, with the weight of its samples."""
    held: dict[PlacedStack, int] = {}
    for seen in samples:
        stack = seen.view.stack
        held[stack] = held.get(stack, 0) + seen.weight_ns
    return [(stack, weight) for stack, weight in held.items() if stack]


def count_views(samples: Iterable[WeighedSample]) -> list[tuple[SampleView, int]]:
    """Each distinct view, with the number of its samples; in the order in which they were first seen."""
    return list(Counter([seen.view for seen in samples]).items())


def one_of_each(seen: Iterable[WeighedSample]) -> tuple[WeighedSample, ...]:
    return tuple({entry.view.kind: entry for entry in seen}.values())


def see(
    samples: tuple[Sample, ...],
    weights_ns: tuple[int, ...],
    place: Callable[[Stack], PlacedStack],
    sites: CallSites,
    machine: str,
    *,
    end: tuple[int, int] | None = None,
) -> tuple[WeighedSample, ...]:
    """Makes the samples ready for the rules. `end`: when the stall ended, and the thread's CPU time by then,
    which is exact."""
    states = [sample.kernel.thread_state if sample.kernel is not None else "" for sample in samples]
    shares = [None] * len(samples) if _MAY_RUN.isdisjoint(states) else _cpu_shares(samples, states)
    if end is not None and None in shares:
        shares = [
            _at_most(sample, end) if state in _MAY_RUN and share is None else share
            for sample, state, share in zip(samples, states, shares, strict=True)
        ]
    views = _Views(place, sites, machine)
    last: Sample | None = None
    view: SampleView | None = None
    seen: list[WeighedSample] = []
    for sample, weight_ns, state, share in zip(samples, weights_ns, states, shares, strict=True):
        # Neighbours are mostly of one view, and comparing them is cheaper than making a key. Where the kernel
        # gave no state, the counters around a sample may tell what it did.
        if last is None or view is None or not state or not _is_like(sample, last):
            view = views.of(sample, state, share)
        last = sample
        seen.append(WeighedSample(sample=sample, weight_ns=weight_ns, cpu_share=share, view=view))
    return tuple(seen)


_facts = attrgetter("gil", "target", "lock", "holder_tid", "waits_for_gil", "in_gc")
_kernel_facts = attrgetter("thread_state", "syscall", "syscall_args")


def _is_like(left: Sample, right: Sample) -> bool:
    """Whether two samples are of one view, the first of which has a kernel's view."""
    if left.stack is not right.stack or left.holder_stack is not right.holder_stack or right.kernel is None:
        return False
    return _kernel_facts(left.kernel) == _kernel_facts(right.kernel) and _facts(left) == _facts(right)


class _Views:
    """Makes each view once."""

    def __init__(self, place: Callable[[Stack], PlacedStack], sites: CallSites, machine: str) -> None:
        self._place = place
        self._sites = sites
        self._machine = machine
        self._known: dict[tuple[object, ...], SampleView] = {}
        self._kinds: dict[tuple[object, ...], int] = {}
        self._calls: dict[PlacedFrame, tuple[object, ...]] = {}
        self._syscalls: dict[int | None, str | None] = {None: None}

    def of(self, sample: Sample, state: str, share: float | None) -> SampleView:
        """The view of a sample. `share`: of the time around it that it spent on a CPU."""
        read, kernel = sample.stack, sample.kernel
        number, args = (None, None) if kernel is None else (kernel.syscall, kernel.syscall_args)
        on_cpu = state == "R" if state else _on_cpu(number, share)
        facts = (
            # The member of an enum by identity: it hashes by calling Python.
            id(sample.gil),
            sample.target,
            sample.lock,
            sample.waits_for_gil,
            sample.in_gc,
            state,
            number,
            args,
            on_cpu,
        )
        key = (id(read), id(sample.holder_stack), sample.holder_tid, facts)
        view = self._known.get(key)
        if view is None:
            stack = NO_STACK if read is None else self._place(read)
            kind = (self._call(stack), stack.path.roles, read is None or read.inner_cut, facts)
            view = self._known[key] = SampleView(
                kind=self._kinds.setdefault(kind, len(self._kinds)),
                stack=stack,
                truncated=read is not None and read.truncated,
                syscall=self._syscall(number),
                state=state,
                on_cpu=on_cpu,
                waits_unseen=number is None and not on_cpu and state not in _STOPPED,
            )
        return view

    def _syscall(self, number: int | None) -> str | None:
        if number not in self._syscalls:
            self._syscalls[number] = syscall_name(number, self._machine) or f"system call {number}"
        return self._syscalls[number]

    def _call(self, stack: PlacedStack) -> tuple[object, ...] | None:
        """What rules ask of the innermost frame: its function, and what that calls; the text itself only
        where it is not a call, but may take a lock. None without frames."""
        if not stack:
            return None
        view = stack.at(0)
        call = self._calls.get(view)
        if call is None:
            site = self._sites.of(view)
            entered = site.callee is None and site.source is not None and site.source.startswith("with ")
            # No rule knows any of the program's own functions, nor of those without a file.
            owner = view.function.owner
            function = None if owner is Owner.OWN or owner is Owner.SYNTHETIC else view.function
            call = self._calls[view] = (function, site.callee, site.text if entered else None)
        return call


_STOPPED = ("T", "t")
_MAY_RUN = frozenset({"R", ""})
_RUNNING_SHARE = 0.5
_NEXT_TO_NOTHING = 0.2


def _on_cpu(syscall: int | None, cpu_share: float | None) -> bool | None:
    """Where the kernel gave no state. (R also means ready to run; the rule for `host` tells the two apart by
    the CPU clock.)"""
    if syscall is not None:
        return False
    return None if cpu_share is None else cpu_share >= _RUNNING_SHARE


_CPU_WINDOW_NS = 16_000_000
"""The kernel adds to a running thread's CPU time at its ticks, 1 to 10 ms apart: over less time than this,
a share says nothing."""


def _cpu_shares(samples: tuple[Sample, ...], states: list[str]) -> list[float | None]:
    """For each sample whose thread may have run: CPU time over wall time between a sample before and one
    after it that are far enough apart."""
    times = [sample.at_ns for sample in samples]
    spent = [None if sample.kernel is None else sample.kernel.on_cpu_ns for sample in samples]
    # Mostly the neighbours are far enough apart.
    lefts, rights = [*times[:1], *times[:-1]], [*times[1:], *times[-1:]]
    befores, afters = [*spent[:1], *spent[:-1]], [*spent[1:], *spent[-1:]]
    pairs = zip(lefts, rights, befores, afters, states, strict=True)
    return [
        None
        if state not in _MAY_RUN
        else (after - before) / (right - left)
        if right - left >= _CPU_WINDOW_NS and before is not None and after is not None
        else _cpu_share(times, spent, index)
        for index, (left, right, before, after, state) in enumerate(pairs)
    ]


def _at_most(sample: Sample, end: tuple[int, int]) -> float | None:
    """The largest share that it can have run from the sample to the stall's end, if that is next to nothing:
    what the kernel said at the sample was late, if anything."""
    if sample.kernel is None or end[0] <= sample.at_ns:
        return None
    share = (end[1] - sample.kernel.on_cpu_ns) / (end[0] - sample.at_ns)
    return share if 0 <= share < _NEXT_TO_NOTHING else None


def _cpu_share(times: list[int], spent: list[int | None], index: int) -> float | None:
    last = len(times) - 1
    left, right = (index - 1 if index else 0), (index + 1 if index < last else last)
    while times[right] - times[left] < _CPU_WINDOW_NS and (left > 0 or right < last):
        left, right = max(0, left - 1), min(last, right + 1)
    wall, before, after = times[right] - times[left], spent[left], spent[right]
    if wall < _CPU_WINDOW_NS or before is None or after is None:
        return None
    return (after - before) / wall
