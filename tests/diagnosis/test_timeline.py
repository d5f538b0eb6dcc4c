"""The samples in order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diagnosis.cases import MS, evidence, frame, judged, kernel, samples, stack

from loopcanary.diagnosis.timeline import EARLIER_MAX, EARLIER_NS, EARLIER_PAUSES_MAX, PAUSES_MAX, SPANS_MAX
from loopcanary.model import (
    Collection,
    Doing,
    GilState,
    LockProof,
    LockView,
    LongWork,
    Sample,
    ShortWork,
    StallEvidence,
    StallScope,
    Target,
    TargetKind,
    ThreadStack,
    Timeline,
    WorkKind,
)

PARSE, READ = stack(frame("parse")), stack(frame("read"))


def timeline(what: StallEvidence) -> Timeline:
    made = judged(what).timeline
    assert made is not None
    return made


def test_equal_neighbouring_samples_are_one_span():
    stall = judged(evidence(samples(PARSE, PARSE, READ, PARSE)))
    assert stall.timeline is not None
    spans = stall.timeline.spans
    assert [(span.offset_ns // MS, span.length_ns // MS, span.samples) for span in spans] == [
        (0, 35, 2),
        (35, 10, 1),
        (45, 15, 1),
    ]
    functions = [stall.stacks[span.stack].frames[0].function for span in spans if span.stack is not None]
    assert functions == ["parse", "read", "parse"]
    assert (stall.timeline.seen_from_ns, stall.timeline.seen_until_ns) == (20 * MS, 60 * MS)
    assert not stall.timeline.thinned


def test_a_sample_without_a_stack_is_a_span_without_one():
    assert [span.stack for span in timeline(evidence(samples(PARSE, None, PARSE))).spans] == [0, None, 0]


def test_a_stall_without_samples_has_no_spans_and_nothing_seen():
    made = timeline(evidence())
    assert (made.spans, made.seen_from_ns, made.seen_until_ns) == ((), 0, 0)


TARGET = Target(kind=TargetKind.FILE, name="/srv/big.csv")


@pytest.mark.parametrize(
    ("taken", "doing"),
    [
        (samples(PARSE, PARSE, PARSE, running=True), Doing.ON_CPU),
        (samples(PARSE, PARSE, PARSE, running=True, queued=0.9), Doing.READY),
        (samples(PARSE, PARSE, running=True, in_gc=True), Doing.GC),
        (samples(PARSE, PARSE, gil=GilState.OTHER, waits_for_gil=True), Doing.GIL_WAIT),
        (samples(PARSE, PARSE, syscall="read", target=TARGET), Doing.BLOCKED),
        (samples(PARSE, PARSE, state="T"), Doing.STOPPED),
        (samples(PARSE, PARSE, view=False), Doing.UNKNOWN),
    ],
)
def test_what_the_thread_did_in_one_word(taken: tuple[Sample, ...], doing: Doing):
    assert {span.activity.doing for span in timeline(evidence(taken)).spans} == {doing}


def test_a_thread_that_sleeps_says_in_which_call_and_on_what():
    (span,) = timeline(evidence(samples(PARSE, PARSE, syscall="read", state="D", target=TARGET))).spans
    activity = span.activity
    assert (activity.state, activity.syscall, activity.waited_on) == ("D", "read", TARGET)


def test_a_running_thread_waits_on_nothing():
    taken = samples(PARSE, PARSE, PARSE, running=True, target=TARGET)
    assert timeline(evidence(taken)).spans[0].activity.waited_on is None


def test_the_holder_is_named_with_what_it_ran():
    held = samples(
        PARSE,
        PARSE,
        gil=GilState.OTHER,
        waits_for_gil=True,
        holder_tid=71,
        holder_stack=stack(frame("crunch"), loop=False),
    )
    (span,) = timeline(evidence(held, thread_names=((71, "worker"),))).spans
    assert (span.activity.holder, span.activity.gil) == ("worker", GilState.OTHER)
    assert [shown.function for shown in span.activity.holder_frames] == ["crunch"]


def test_nameless_holders_have_numbers_locks_have_types():
    lock = LockView(kind="RLock", proof=LockProof.OWNER)
    (span,) = timeline(evidence(samples(PARSE, syscall="futex", holder_tid=9, lock=lock))).spans
    assert (span.activity.holder, span.activity.lock) == ("thread 9", "RLock")


def test_the_longest_of_very_many_holders_are_kept():
    stacks = [stack(frame(f"f{number}"), loop=False) for number in range(40)]
    taken = [
        replace(sample, holder_tid=71, holder_stack=stacks[index % 40 if index < 40 else 39])
        for index, sample in enumerate(samples(*[PARSE] * 80, gil=GilState.OTHER, waits_for_gil=True))
    ]
    kept = {span.activity.holder_frames for span in timeline(evidence(tuple(taken))).spans}
    assert len(kept) == 17  # 16 of them, and none
    assert any(frames and frames[0].function == "f39" for frames in kept)


def test_too_many_spans_are_thinned_and_say_so():
    many = [stack(frame(f"f{number}")) for number in range(SPANS_MAX + 3)]
    made = timeline(evidence(samples(*many)))
    assert made.thinned
    assert SPANS_MAX // 2 <= len(made.spans) <= SPANS_MAX
    assert sum(span.samples for span in made.spans) == SPANS_MAX + 3


@given(
    st.lists(
        st.tuples(st.integers(0, 10 * MS), st.sampled_from([PARSE, READ, None]), st.sampled_from("RSDT")),
        max_size=600,
    ),
    st.integers(0, 1000 * MS),
)
def test_spans_cover_the_stall_and_agree_with_stacks(story: list[tuple[int, object, str]], tail_ns: int):
    taken, at_ns = [], 0
    for step_ns, read, state in story:
        at_ns += step_ns
        taken.append(Sample(at_ns=at_ns, stack=read, kernel=kernel(state)))
    end_ns = at_ns + tail_ns
    stall = judged(replace(evidence(), samples=tuple(taken), end_ns=end_ns, last_look_ns=end_ns))
    made = stall.timeline
    assert made is not None
    edge = 0
    for span in made.spans:
        assert span.offset_ns == edge
        assert span.length_ns > 0
        edge += span.length_ns
    assert edge == (end_ns if story else 0)
    assert len(made.spans) <= SPANS_MAX
    assert 0 <= made.seen_from_ns <= made.seen_until_ns <= end_ns
    if not made.thinned:
        for number, shown in enumerate(stall.stacks):
            assert shown.weight_ns == sum(span.length_ns for span in made.spans if span.stack == number)


def test_the_timeline_says_when_all_threads_were_read():
    read = tuple(ThreadStack(tid=tid, at_ns=1_000 * MS + tid, name="t", stack=PARSE) for tid in (71, 70))
    assert timeline(evidence(samples(PARSE), lasted_ms=1_200, threads=read)).threads_at_ns == 1_000 * MS + 70
    assert timeline(evidence(samples(PARSE))).threads_at_ns is None


def collection(begin_ms: int, end_ms: int, tid: int = 70) -> Collection:
    return Collection(begin_ns=begin_ms * MS, end_ns=end_ms * MS, tid=tid, generation=2, collected=5)


def test_collections_have_their_thread():
    begin = 20_000
    what = replace(
        evidence(),
        begin_ns=begin * MS,
        end_ns=(begin + 300) * MS,
        collections=(collection(begin + 50, begin + 80), collection(begin - 5, begin + 5, tid=71)),
        earlier_collections=(
            collection(begin - 900, begin - 890),
            collection(begin - EARLIER_NS // MS - 20, begin - EARLIER_NS // MS - 10),
        ),
        thread_names=((71, "worker"),),
    )
    shown = [
        (pause.offset_ns // MS, pause.length_ns // MS, pause.thread, pause.own)
        for pause in timeline(what).pauses
    ]
    assert shown == [(-900, 10, "MainThread", True), (-5, 10, "worker", False), (50, 30, "MainThread", True)]


def test_of_very_many_collections_the_longest_are_kept():
    many = tuple(collection(number * 3, number * 3 + 1) for number in range(PAUSES_MAX + 20))
    longest = collection(290, 299)
    made = timeline(replace(evidence(), collections=(*many, longest)))
    assert len(made.pauses) == PAUSES_MAX
    assert made.pauses[-1].length_ns == 9 * MS


def test_very_many_earlier_collections_are_thinned():
    many = tuple(collection(19_000 + 10 * number, 19_001 + 10 * number) for number in range(50))
    what = replace(
        evidence(),
        begin_ns=20_000 * MS,
        end_ns=20_300 * MS,
        earlier_collections=(*many, collection(19_600, 19_609)),
    )
    made = timeline(what)
    assert len(made.pauses) == EARLIER_PAUSES_MAX
    assert max(pause.length_ns for pause in made.pauses) == 9 * MS


def long_work(begin_ms: int, end_ms: int) -> LongWork:
    return LongWork(
        kind=WorkKind.CALLBACK,
        name="Shop.refresh",
        task="refresher",
        begin_ns=begin_ms * MS,
        end_ns=end_ms * MS,
        longest_ns=(end_ms - begin_ms) * MS,
        short=ShortWork(turns=40, callbacks=70, busy_ns=2 * MS, idle_ns=9 * MS),
    )


def test_work_before_the_stall_has_how_long_ago_it_began():
    last = ShortWork(turns=3, callbacks=4, busy_ns=MS, idle_ns=0)
    what = replace(
        evidence(),
        begin_ns=25_000 * MS,
        end_ns=25_300 * MS,
        earlier=(
            long_work(14_000, 14_500),
            long_work(21_000, 21_020),
            long_work(24_900, 24_950),
            long_work(24_990, 25_010),
        ),
        earlier_from_ns=500 * MS,
        earlier_last=last,
    )
    made = timeline(what)
    assert [(work.ago_ns // MS, work.length_ns // MS) for work in made.earlier] == [(4_000, 20), (100, 50)]
    first = made.earlier[0]
    assert (first.kind, first.name, first.task) == (WorkKind.CALLBACK, "Shop.refresh", "refresher")
    assert first.short == long_work(0, 0).short
    assert (made.earlier_from_ns, made.earlier_last) == (EARLIER_NS, last)


def test_of_very_much_work_before_the_stall_the_last_is_kept():
    many = tuple(long_work(20_000 + 10 * number, 20_005 + 10 * number) for number in range(EARLIER_MAX + 9))
    what = replace(evidence(), begin_ns=25_000 * MS, end_ns=25_300 * MS, earlier=many, earlier_from_ns=0)
    made = timeline(what)
    assert len(made.earlier) == EARLIER_MAX
    assert made.earlier_from_ns == made.earlier[0].ago_ns
    assert made.earlier[-1].ago_ns == 25_000 * MS - many[-1].begin_ns


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"turn_begin_ns": 900 * MS, "turn_callbacks": 4}, (100 * MS, 3)),
        ({"turn_begin_ns": 900 * MS, "turn_callbacks": 4, "end_ns": None}, (100 * MS, 4)),
        ({"turn_begin_ns": 1_000 * MS, "scope": StallScope.TURN, "turn_callbacks": 4}, (None, 0)),
        ({"turn_begin_ns": None}, (None, 0)),
    ],
    ids=["a callback that is over counts in its turn", "one that goes on does not", "a turn", "not known"],
)
def test_what_of_its_own_turn_was_before_a_callback(what: dict[str, object], expected: object):
    made = timeline(replace(evidence(), **{"begin_ns": 1_000 * MS, "end_ns": 1_300 * MS, **what}))
    assert (made.turn_ago_ns, made.turn_callbacks) == expected
