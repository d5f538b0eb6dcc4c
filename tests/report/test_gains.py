"""What the end of a group would bring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.building.stalls import CULPRIT, MS, STALL, S, frame, session

from loopcanary.assembly.explanations import delays, why_grouped
from loopcanary.diagnosis.code.ownership import CodePaths
from loopcanary.diagnosis.fingerprint import fingerprint
from loopcanary.model import Cause, Holder, LoopHealth, Portion, Session, WeightedStack
from loopcanary.model.search import IssueMark, IssueQuery
from loopcanary.report.figures.gains import Gains, LoopKey, Loops, gain_words, names, own_part
from loopcanary.report.model import build
from loopcanary.store import Store

LOOP = LoopHealth(
    thread="MainThread",
    kind="asyncio",
    turns=1_010,
    callbacks=2_000,
    busy_ns=6 * S,
    window_ns=100 * S,
    utilization=0.06,
    delay_p50_ns=0,
    delay_p99_ns=0,
    delay_max_ns=500 * MS,
    # 1,000 turns of 1 ms and 10 of 500 ms: sum(d * d) / 2 T.
    delay_mean_ns=(1_000 * MS**2 + 10 * (500 * MS) ** 2) // (200 * S),
    queue_mean_ns=3 * MS,
    queue_max_ns=500 * MS,
    histogram=((MS, 1_000), (500 * MS, 10)),
)


def ran(number: int, *loops: LoopHealth) -> Session:
    return session(id=f"s{number}", loops=loops or (LOOP,))


def mark(session_id: str = "s1", thread: str = "MainThread", loop: str = "asyncio") -> IssueMark:
    return IssueMark("1:f", session_id, thread, loop, 0, 500 * MS)


def test_a_loop_without_its_stalls_makes_events_wait_less() -> None:
    [gain] = Loops([ran(1)], delays).gains([mark()] * 10, 1.0).loops
    assert gain.loop == LoopKey("shop", "MainThread", "asyncio")
    # P(delay > x) = 10 (500 ms - x) / 100 s + ..., which is 1 % at 400 ms.
    assert gain.p99_ns == pytest.approx(400 * MS, rel=0.02)
    assert gain.p99_without_ns == pytest.approx(0, abs=MS)


def test_half_of_the_stalls_are_half_of_the_gain() -> None:
    [gain] = Loops([ran(1)], delays).gains([mark()] * 5, 1.0).loops
    assert gain.p99_without_ns == pytest.approx(300 * MS, rel=0.02)


def test_without_one_line_of_two_the_other_s_time_stays() -> None:
    measured = replace(
        LOOP,
        delay_mean_ns=(1_000 * MS**2 + 10 * (215 * MS) ** 2) // (200 * S),
        delay_max_ns=215 * MS,
        histogram=((MS, 1_000), (215 * MS, 10)),
    )
    [gain] = Loops([ran(1)], delays).gains([mark()] * 10, own_part(PARTS)).loops
    assert gain.p99_without_ns == pytest.approx(delays([measured])(()), rel=0.2)


OTHER = replace(CULPRIT, line=CULPRIT.line + 1)
PARTS = replace(
    STALL,
    portions=(
        Portion(share=0.57, cause=Cause.NATIVE_CPU, culprit=CULPRIT, blocker=None),
        Portion(share=0.43, cause=Cause.SLEEP, culprit=OTHER, blocker=None),
    ),
)
STRUCK = Portion(share=0.4, cause=Cause.GC, culprit=None, blocker=None)
TWO_CALLS = {
    "portions": (),
    "stacks": tuple(
        WeightedStack(weight_ns=weight, frames=(frame("load_orders", CULPRIT.file, line, in_app=True),))
        for weight, line in ((60, CULPRIT.line), (40, CULPRIT.line + 1))
    ),
}
HELD = Holder(thread="pool", culprit=OTHER, share=0.8)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        pytest.param({"portions": (), "cause_share": 0.94}, 0.94, id="one cause"),
        pytest.param({}, 0.57, id="two lines"),
        pytest.param({"culprit": replace(CULPRIT, line=1)}, 0.57, id="a caller of both"),
        pytest.param({**TWO_CALLS, "cause": Cause.SLEEP}, 0.6, id="one call of two in a function"),
        pytest.param({**TWO_CALLS, "cause": Cause.CPU}, 1.0, id="two lines that compute"),
        pytest.param({"cause": Cause.GC, "portions": (STRUCK, *PARTS.portions)}, 0.4, id="automatic gc"),
        pytest.param({"cause": Cause.GIL, "holder": HELD}, 0.8, id="a line that held the GIL"),
    ],
)
def test_the_part_of_a_stall_that_ends_with_its_bug(changes: dict[str, Any], part: float) -> None:
    assert own_part(replace(PARTS, **changes)) == part


def test_a_report_s_gain_is_that_of_the_bug_s_own_line(store: Store) -> None:
    store.put([ran(1)], [replace(PARTS, thread="MainThread", duration_ns=500 * MS)])
    report = build(store.reader, IssueQuery(), limit=9, now_wall_ns=STALL.began_wall_ns, delays=delays)
    alone = Loops([ran(1)], delays).gains([mark()], 0.57)
    assert report.figures[STALL.fingerprint].gains == alone


@pytest.mark.parametrize(
    ("waiting_ns", "ended_ns", "said"),
    [
        (1_663 * S, 9 * S, "at least 9.00 s less waiting for 185 other callbacks at a time"),
        (4 * S, 9 * S, "at least 4.00 s less waiting for other callbacks"),
        (19_000, 9 * S, None),
    ],
    ids=["more than the stalls", "less", "next to nothing"],
)
def test_waiting_is_no_longer_than_the_stalls(waiting_ns: int, ended_ns: int, said: str | None) -> None:
    gains = Gains(waiting_ns=waiting_ns, ended_ns=ended_ns)
    assert list(gain_words(gains)) == ([said] if said else [])


def test_a_delay_of_almost_nothing_is_said_as_such() -> None:
    gains = Loops([ran(1)], delays).gains([mark()] * 10, 1.0)
    assert "p99 loop delay 400 ms -> under 1 ms" in gain_words(gains)


def test_loops_of_several_sessions_are_one() -> None:
    once = Loops([ran(1)], delays).gains([mark()] * 10, 1.0)
    both = Loops([ran(1), ran(2)], delays).gains([mark()] * 10 + [mark("s2")] * 10, 1.0)
    assert both.loops == once.loops
    assert both.waiting_ns == 2 * (once.waiting_ns or 0)


def test_others_waiting_follows_from_the_queue() -> None:
    gains = Loops([ran(1)], None).gains([mark()] * 10, 1.0)
    assert gains.waiting_ns == 5 * S * (3 * MS * 2_000) // (6 * S)
    assert gains.loops == ()


@pytest.mark.parametrize(
    ("loops", "at"),
    [
        ((LOOP, replace(LOOP, thread="other")), mark(thread="", loop="")),
        ((LOOP,), mark(session_id="elsewhere")),
        ((LOOP,), mark(thread="worker")),
    ],
    ids=["an old stall of a session with two loops", "a session that is not there", "another thread"],
)
def test_what_is_not_known_is_not_made_up(loops: tuple[LoopHealth, ...], at: IssueMark) -> None:
    gains = Loops([ran(1, *loops)], delays).gains([at], 1.0)
    assert gains.loops == ()
    assert gains.waiting_ns is None


def test_an_old_stall_is_of_its_session_s_only_loop() -> None:
    assert Loops([ran(1)], delays).gains([mark(thread="", loop="")], 1.0).loops


def test_a_loop_without_a_histogram_has_no_gain() -> None:
    gains = Loops([ran(1, replace(LOOP, histogram=(), queue_mean_ns=0))], delays).gains([mark()], 1.0)
    assert gains.loops == ()
    assert gains.waiting_ns is None


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ([LoopKey("shop", "MainThread", "asyncio")], [""]),
        ([LoopKey("shop", "MainThread", "uvloop")], [""]),
        ([LoopKey("a", "MainThread", "qt"), LoopKey("a", "io", "asyncio")], ["MainThread, (qt)", "io"]),
        ([LoopKey("a", "MainThread", "asyncio"), LoopKey("b", "MainThread", "asyncio")], ["a", "b"]),
        ([LoopKey("a", "MainThread", "asyncio"), LoopKey("a", "io", "asyncio")], ["MainThread", "io"]),
    ],
)
def test_a_loop_s_name_is_as_short_as_it_can_be(keys: list[LoopKey], shown: list[str]) -> None:
    assert list(names(keys).values()) == shown


def test_why_stalls_are_grouped_is_proven_by_the_fingerprint() -> None:
    judged = replace(STALL, fingerprint=fingerprint(STALL, CodePaths(roots=("/srv/shop",))))
    assert "culprit.file=orders.py" in why_grouped(judged, ())
    deeper = replace(STALL, fingerprint=fingerprint(STALL, CodePaths(roots=("/srv",))))
    assert "culprit.file=shop/orders.py" in why_grouped(deeper, ())
    assert why_grouped(replace(STALL, fingerprint="1:of another version"), ()) == ()


def test_a_delay_that_was_almost_nothing_before_is_no_gain() -> None:
    gains = Loops([ran(1)], delays).gains([mark()] * 10, 1.0)
    short = [replace(gain, p99_ns=MS // 20, p99_without_ns=0) for gain in gains.loops]
    assert not [words for words in gain_words(replace(gains, loops=tuple(short))) if "delay" in words]
