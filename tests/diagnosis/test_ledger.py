"""Where the wall time went."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.diagnosis.cases import MS, evidence, frame, kernel, samples, stack

from loopcanary.diagnosis.ledger import make_ledger
from loopcanary.diagnosis.weights import weigh
from loopcanary.model import Collection, GilState, Ledger, Sample

ASLEEP = [stack(frame("handler"))] * 10


def ledger_of(what):
    end = what.last_look_ns if what.end_ns is None else what.end_ns
    weights = weigh([sample.at_ns for sample in what.samples], what.begin_ns, end, what.sample_interval_ns)
    return make_ledger(what, end, weights), weights


def test_a_sleeping_thread_was_blocked_for_all_that_was_seen():
    ledger, weights = ledger_of(evidence(samples(*ASLEEP)))
    assert ledger == Ledger(
        on_cpu_ns=0, gil_wait_ns=0, run_queue_ns=0, blocked_ns=weights.covered_ns, gc_ns=0
    )


def test_a_running_thread_was_on_the_cpu():
    ledger, weights = ledger_of(evidence(samples(*ASLEEP, running=True)))
    assert (ledger.on_cpu_ns, ledger.blocked_ns) == (weights.covered_ns, 0)


def test_the_cpu_time_at_the_end_is_taken_as_it_is():
    ledger, _ = ledger_of(evidence(samples(*ASLEEP), lasted_ms=200, end_cpu_ns=50 * MS))
    assert ledger.on_cpu_ns == 50 * MS
    assert ledger.blocked_ns == 130 * MS


def test_waiting_for_the_gil_is_no_blocking():
    ledger, weights = ledger_of(evidence(samples(*ASLEEP, waits_for_gil=True, gil=GilState.OTHER)))
    assert (ledger.gil_wait_ns, ledger.blocked_ns) == (weights.covered_ns, 0)


def test_what_was_not_measured_is_none():
    ledger, _ = ledger_of(evidence(samples(*ASLEEP, view=False, gil=GilState.UNKNOWN), engine="portable"))
    assert ledger == Ledger()
    ledger, _ = ledger_of(evidence())
    assert ledger == Ledger()


def test_one_sample_tells_the_cpu_time_only_and_no_rest():
    ledger, _ = ledger_of(evidence(samples(ASLEEP[0]), lasted_ms=100, end_cpu_ns=30 * MS))
    assert (ledger.on_cpu_ns, ledger.run_queue_ns, ledger.blocked_ns) == (30 * MS, None, None)


def test_collections_of_this_thread_count_where_they_overlap():
    entries = [(-50, 10, 70), (100, 120, 70), (50, 90, 99)]
    collections = tuple(
        Collection(begin_ns=begin * MS, end_ns=end * MS, tid=tid, generation=1) for begin, end, tid in entries
    )
    ledger, _ = ledger_of(evidence(lasted_ms=110, collections=collections))
    assert ledger.gc_ns == 20 * MS


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
    return evidence(
        tuple(taken),
        end_ns=draw(st.sampled_from([end, None])),
        last_look_ns=end,
        end_cpu_ns=draw(st.none() | st.integers(on_cpu, on_cpu + 10**8)),
        collections=tuple(
            Collection(begin_ns=begin, end_ns=begin + length, tid=70, generation=0)
            for begin, length in draw(
                st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**8)), max_size=3)
            )
        ),
    )


@given(counted())
def test_the_entries_sum_to_what_was_seen_and_never_to_more_than_the_stall(what):
    ledger, weights = ledger_of(what)
    parts = (ledger.on_cpu_ns, ledger.gil_wait_ns, ledger.run_queue_ns, ledger.blocked_ns)
    assert all(part is None or part >= 0 for part in parts)
    assert sum(part or 0 for part in parts) <= weights.duration_ns
    if ledger.blocked_ns is not None and what.end_ns is not None and what.end_cpu_ns is not None:
        assert sum(part or 0 for part in parts) == what.end_ns - what.samples[0].at_ns
    elif ledger.blocked_ns is not None:
        assert sum(part or 0 for part in parts) == weights.covered_ns
    if ledger.gc_ns is not None and ledger.on_cpu_ns is not None:
        assert ledger.gc_ns <= ledger.on_cpu_ns
