"""What `make kills` calls a miss."""

from __future__ import annotations

import pytest
from kills.judge import WITHOUT_SAMPLE, Life, Margins, blocks_of, judge

MS = 1_000_000
NOON = "2026-11-24T12:00:00.%03d+00:00"
NOON_NS = 1_795_521_600_000 * MS
MARGINS = Margins(noticed_ns=50 * MS)
LINES = [("begin", 0, "sleeps", 0), ("end", 0, "sleeps", 300 * MS), ("begin", 1, "matches", 301 * MS)]
LIFE = Life(blocks=blocks_of(LINES), killed_ns=600 * MS, wall_ns=NOON_NS)


def stall(number, function, state, **more):
    culprit = {"function": function}
    facts = {"id": "1", "scene": f"block {number}", "culprit": culprit, "state": state, "samples": 9}
    return facts | {"evidence": [], "duration_ms": 300, "ledger": {"run_queue_ms": None}} | more


ENDED, KILLED = stall(0, "sleeps", "ended"), stall(1, "matches", "killed")


def test_each_stall_is_there_once():
    verdict = judge(LIFE, [ENDED, KILLED], MARGINS)
    assert verdict.misses == ()
    assert verdict.checked == {"ended before": 1, "killed in it": 1}


@pytest.mark.parametrize(
    "stalls",
    [
        [KILLED],
        [ENDED],
        [ENDED, ENDED, KILLED],
        [ENDED, stall(1, "matches", "ended")],
        [ENDED, stall(1, "sleeps", "killed")],
        [ENDED, stall(1, None, "killed", samples=0)],
    ],
    ids=["ended one missing", "killed one missing", "twice", "state", "function", "no sample"],
)
def test_what_is_missing_twice_or_wrong_is_a_miss(stalls):
    assert len(judge(LIFE, stalls, MARGINS).misses) == 1


def test_a_function_that_the_host_did_not_run_is_no_miss():
    starved = stall(1, "say", "killed", ledger={"run_queue_ms": 290})
    assert judge(LIFE, [ENDED, starved], MARGINS).misses == ()


def test_a_stall_that_the_watchdog_never_saw_goes_by_its_time():
    """It may have no core for seconds: only the thread's own record of the end is there, and no scene."""
    unseen = stall(0, None, "ended", scene=None, samples=0, began_at=NOON % 3)
    verdict = judge(LIFE, [unseen, KILLED], MARGINS)
    assert verdict.misses == ()
    assert verdict.checked == {"ended before": 1, "killed in it": 1, WITHOUT_SAMPLE: 1}
    another = unseen | {"began_at": NOON % 120}
    assert len(judge(LIFE, [another, KILLED], MARGINS).misses) == 1


def test_a_short_block_need_not_be_the_culprit():
    """Our own drain held the GIL for most of it: no line of the program is to blame."""
    life = Life(blocks=blocks_of([LINES[0], ("end", 0, "sleeps", 90 * MS)]), killed_ns=600 * MS, wall_ns=0)
    assert judge(life, [stall(0, None, "ended")], MARGINS).misses == ()
    assert len(judge(life, [stall(0, "matches", "ended")], MARGINS).misses) == 1


def test_a_stall_that_was_not_yet_kept_may_be_missing():
    margins = Margins(noticed_ns=50 * MS, kept_ns=1_000 * MS)
    verdict = judge(LIFE, [], margins)
    assert (verdict.misses, verdict.checked) == ((), {})
