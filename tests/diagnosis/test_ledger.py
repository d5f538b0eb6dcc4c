"""Where the wall time went."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.diagnosis.cases import MS, evidence, frame, kernel, samples, stack

from loopcanary.diagnosis.ledger import make_ledger
from loopcanary.diagnosis.samples.weights import weigh
from loopcanary.model import Collection, GilState, Ledger, Sample, ThreadReading

ASLEEP = [stack(frame("handler"))] * 10


def ledger_of(what):
    end = what.last_look_ns if what.end_ns is None else what.end_ns
    weights = weigh([sample.at_ns for sample in what.samples], what.begin_ns, end, what.sample_interval_ns)
    return make_ledger(what, end, weights), weights


def test_a_sleeping_thread_was_blocked_all_the_time():
    ledger, weights = ledger_of(evidence(samples(*ASLEEP)))
    # Head and tail were not seen: 20 ms and 10 ms, for each of two counters.
    assert ledger == Ledger(
        on_cpu_ns=0,
        gil_wait_ns=0,
        run_queue_ns=0,
        blocked_ns=weights.duration_ns,
        gc_ns=0,
        error_ns=60 * MS,
    )


def test_sleep_that_the_kernel_counts_as_waiting_is_sleep():
    seen = evidence(samples(*ASLEEP))
    counted = [
        replace(sample, kernel=replace(sample.kernel, run_queue_ns=sample.at_ns)) for sample in seen.samples
    ]
    ledger, weights = ledger_of(replace(seen, samples=tuple(counted)))
    assert ledger.run_queue_ns <= weights.duration_ns / 4
    assert ledger.blocked_ns >= weights.duration_ns * 3 / 4
    assert ledger.error_ns >= weights.duration_ns / 2  # the counter and the samples deny each other


def test_a_wait_for_a_core_that_is_not_over_is_not_counted_yet():
    """The kernel counts a wait when it is over: here it lasts from the 6th look to the end."""
    asleep = evidence(samples(*ASLEEP))
    ready = [
        sample if sample.at_ns < 70 * MS else replace(sample, kernel=replace(sample.kernel, thread_state="R"))
        for sample in asleep.samples
    ]
    ledger, weights = ledger_of(replace(asleep, samples=tuple(ready)))
    assert ledger.run_queue_ns == weights.duration_ns - 70 * MS
    assert ledger.blocked_ns == 70 * MS


def test_a_running_thread_was_on_the_cpu():
    ledger, weights = ledger_of(evidence(samples(*ASLEEP, running=True)))
    assert (ledger.on_cpu_ns, ledger.blocked_ns) == (weights.duration_ns, 0)


def test_the_cpu_time_at_the_end_is_taken_as_it_is():
    ledger, _ = ledger_of(evidence(samples(*ASLEEP), lasted_ms=220, end_cpu_ns=50 * MS))
    # A quarter of the time since the first sample, and so of the head of 20 ms too.
    assert ledger.on_cpu_ns == 55 * MS
    assert ledger.blocked_ns == 165 * MS


def test_a_reading_before_the_begin_bounds_the_head():
    before = ThreadReading(at_ns=-2 * MS, kernel=kernel("S", None, 0, 0))
    taken = tuple(
        replace(sample, kernel=kernel("S", None, 12 * MS, 0)) for sample in samples(*ASLEEP, running=False)
    )
    what = evidence(taken, before=before, end_cpu_ns=12 * MS)
    ledger, _ = ledger_of(what)
    # Of the 12 ms that were counted since, at most 2 ms lie before the begin.
    assert ledger.on_cpu_ns == 11 * MS
    assert ledger.error_ns == 1 * MS + 10 * MS  # and the run queue of the tail of 10 ms is not known


def test_waiting_for_the_gil_is_no_blocking():
    ledger, weights = ledger_of(evidence(samples(*ASLEEP, waits_for_gil=True, gil=GilState.OTHER)))
    assert (ledger.gil_wait_ns, ledger.blocked_ns) == (weights.duration_ns, 0)


def test_what_was_not_measured_is_none():
    ledger, _ = ledger_of(evidence(samples(*ASLEEP, view=False, gil=GilState.UNKNOWN), engine="portable"))
    assert ledger == Ledger()
    ledger, _ = ledger_of(evidence())
    assert ledger == Ledger()


def test_one_sample_tells_the_cpu_time_only_and_no_rest():
    ledger, _ = ledger_of(evidence(samples(ASLEEP[0]), lasted_ms=100, end_cpu_ns=40 * MS))
    assert (ledger.on_cpu_ns, ledger.run_queue_ns, ledger.blocked_ns) == (50 * MS, None, None)


def test_readings_around_a_stall_give_its_cpu_time():
    before = ThreadReading(at_ns=-20 * MS, kernel=kernel("S", None, 5 * MS, 0))
    ledger, _ = ledger_of(evidence(lasted_ms=300, before=before, end_cpu_ns=295 * MS))
    assert (ledger.on_cpu_ns, ledger.error_ns) == (280 * MS, 10 * MS)


def test_collections_of_this_thread_count_where_they_overlap():
    entries = [(-50, 10, 70), (100, 120, 70), (50, 90, 99)]
    collections = tuple(
        Collection(begin_ns=begin * MS, end_ns=end * MS, tid=tid, generation=1) for begin, end, tid in entries
    )
    ledger, _ = ledger_of(evidence(lasted_ms=110, collections=collections))
    assert ledger.gc_ns == 20 * MS


def collecting(gc_total_ms, *, in_gc):
    """Ten samples, every other in a collection, while the process's counter goes from nothing to this."""
    taken = samples(*ASLEEP, running=True)
    step = gc_total_ms * MS // (len(taken) - 1)
    return tuple(
        replace(sample, gc_total_ns=index * step, in_gc=in_gc and index % 2 == 0)
        for index, sample in enumerate(taken)
    )


def kept(begin, end):
    return (Collection(begin_ns=begin * MS, end_ns=end * MS, tid=70, generation=1),)


def test_collections_that_were_not_kept_count_by_the_counter():
    ledger, _ = ledger_of(evidence(collecting(36, in_gc=True), collections=kept(90, 92)))
    assert ledger.gc_ns == 36 * MS


def test_the_gc_counter_is_bounded_by_what_was_seen():
    taken = collecting(90, in_gc=True)
    ledger, weights = ledger_of(evidence(taken, collections=kept(90, 92)))
    assert ledger.gc_ns == sum(weights.weights_ns[::2])
    ledger, _ = ledger_of(evidence(collecting(90, in_gc=False), collections=kept(90, 92)))
    assert ledger.gc_ns == 2 * MS


@st.composite
def counted(draw):
    """Evidence with any counters that ascend, even faster than the clock."""
    steps = draw(st.lists(st.tuples(*[st.integers(0, 10**8)] * 3, st.booleans()), max_size=20))
    at = on_cpu = queue = 0
    taken = []
    for step, cpu, waited, waits in steps:
        at, on_cpu, queue = at + step, on_cpu + cpu, queue + waited
        gil = GilState.OTHER if waits else GilState.FREE
        taken.append(
            Sample(
                at_ns=at, stack=None, kernel=kernel("S", None, on_cpu, queue), gil=gil, waits_for_gil=waits
            )
        )
    end = at + draw(st.integers(0, 10**8))
    before = ThreadReading(at_ns=-draw(st.integers(0, 10**8)), kernel=kernel("S", None, 0, 0))
    return evidence(
        tuple(taken),
        end_ns=draw(st.sampled_from([end, None])),
        last_look_ns=end,
        end_cpu_ns=draw(st.none() | st.integers(on_cpu, on_cpu + 10**8)),
        before=draw(st.none() | st.just(before)),
        collections=tuple(
            Collection(begin_ns=begin, end_ns=begin + length, tid=70, generation=0)
            for begin, length in draw(
                st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**8)), max_size=3)
            )
        ),
    )


def parts(ledger):
    return (ledger.on_cpu_ns, ledger.gil_wait_ns, ledger.run_queue_ns, ledger.blocked_ns)


@given(counted())
def test_the_entries_sum_to_the_stall_and_never_to_more(what):
    ledger, weights = ledger_of(what)
    assert all(part is None or part >= 0 for part in parts(ledger))
    if ledger.blocked_ns is not None:
        assert sum(part or 0 for part in parts(ledger)) == weights.duration_ns
    assert sum(part or 0 for part in parts(ledger)) <= weights.duration_ns
    assert ledger.error_ns is None or 0 <= ledger.error_ns <= weights.duration_ns
    if ledger.gc_ns is not None and ledger.on_cpu_ns is not None:
        assert ledger.gc_ns <= ledger.on_cpu_ns


STATES = ("on_cpu", "run_queue", "blocked")


class Life:
    """A thread whose every nanosecond is known."""

    def __init__(self, pieces):
        self.pieces = pieces

    def spent(self, state, begin, end):
        total = at = 0
        for kind, length in self.pieces:
            total += max(0, min(at + length, end) - max(at, begin)) if kind == state else 0
            at += length
        return total

    def view(self, at):
        return kernel("S", None, self.spent("on_cpu", 0, at), self.spent("run_queue", 0, at))


@given(
    pieces=st.lists(st.tuples(st.sampled_from(STATES), st.integers(1, 10**6)), min_size=1, max_size=30),
    moments=st.lists(st.integers(0, 10**6), min_size=2, max_size=12, unique=True),
    has_before=st.booleans(),
    has_end=st.booleans(),
)
def test_the_truth_of_any_thread_lies_within_the_error(pieces, moments, has_before, has_end):
    life = Life(pieces)
    length = sum(size for _, size in pieces)
    times = sorted({moment * length // 10**6 for moment in moments})
    begin, end = times[len(times) // 3], length
    before = ThreadReading(at_ns=times[0], kernel=life.view(times[0])) if has_before else None
    taken = tuple(
        Sample(at_ns=at, stack=None, kernel=life.view(at), gil=GilState.FREE) for at in times if at > begin
    )
    what = evidence(
        taken,
        begin_ns=begin,
        end_ns=end,
        last_look_ns=end,
        before=before,
        end_cpu_ns=life.spent("on_cpu", 0, end) if has_end else None,
    )
    ledger, _ = ledger_of(what)
    for state, known in zip(STATES, (ledger.on_cpu_ns, ledger.run_queue_ns, ledger.blocked_ns), strict=True):
        assert known is None or abs(known - life.spent(state, begin, end)) <= ledger.error_ns + 1
