"""The zoo of deadlocks: its kinds, what is called right, and three programs."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

pytest.importorskip("anyio")
pytest.importorskip("trio")

from zoo.deadlocks.catalogue import Scenario, read_all
from zoo.deadlocks.play import Stage
from zoo.deadlocks.scoring import Claim, Verdict, claims, is_true, sums

CIRCLE = Scenario(name="bank", family="", summary="", cycle={"a": "Lock 'x'", "b": "Lock", "c": "task a"})
LEAK = Scenario(name="cache", family="", summary="", leaked="Cache.lock", holder="fill")
CONTROL = Scenario(name="busy", family="", summary="")
WAITS = (("a", "Lock 'x'"), ("b", "Lock"), ("c", "the task a"))
LEAKED = Claim(leaked="Lock 'Cache.lock'", holder="fill")


def test_there_are_enough_kinds_and_controls():
    kinds = read_all()
    counts = Counter("control" if one.is_control else "unseen" if one.unseen else "kind" for one in kinds)
    assert counts["kind"] >= 40
    assert counts["control"] >= 15
    assert all(one.holder for one in kinds if one.leaked)


@pytest.mark.parametrize(
    ("claim", "kind", "right"),
    [
        (Claim(cycle=WAITS), CIRCLE, True),
        (Claim(cycle=(*WAITS[1:], WAITS[0])), CIRCLE, True),
        (Claim(cycle=(WAITS[0], WAITS[2], WAITS[1])), CIRCLE, False),
        (Claim(cycle=WAITS[:2]), CIRCLE, False),
        (Claim(cycle=(("a", "Lock 'y'"), *WAITS[1:])), CIRCLE, False),
        (LEAKED, LEAK, True),
        (LEAKED, CIRCLE, False),
        (Claim(cycle=WAITS), LEAK, False),
        (Claim(leaked="Lock 'Cache.lock'", holder="read"), LEAK, False),
        (Claim(leaked="Lock 'Cache.lock'", holder="fill", has_ended=False), LEAK, False),
    ],
    ids=[
        "circle", "begins elsewhere", "other order", "one missing", "other lock",
        "leak", "leak for a circle", "circle for a leak", "other holder", "holder has not ended",
    ],
)  # fmt: skip
def test_a_claim_is_true_of_a_kind(claim, kind, right):
    assert is_true(claim, kind) == right


def test_claims_of_tasks_are_read_from_issues():
    cycle = [{"task": "a", "waits_for": "Lock 'x'"}, {"task": "b", "waits_for": "the task a"}]
    leak = {"kind": "lock-leak", "primitive": "Lock 'Cache.lock'", "holder": "fill", "has_ended": True}
    report = {"stalls": [], "issues": [{"kind": "deadlock", "cycle": cycle}, leak, {"kind": "startup"}]}
    assert claims(report) == (Claim(cycle=(("a", "Lock 'x'"), ("b", "the task a"))), LEAKED)


@pytest.mark.parametrize(
    ("evidence", "cycle"),
    [
        (
            [
                "A deadlock: MainThread and refunds wait for each other.",
                "MainThread waits in pay (bank.py:21) for the lock that refunds holds.",
                "refunds waits in refund (bank.py:14) for the end of MainThread.",
            ],
            (("MainThread", "the lock that refunds holds"), ("refunds", "the end of MainThread")),
        ),
        (
            [
                "b and c wait for each other until a timeout.",
                "MainThread waits for the lock that b holds.",
                "b waits for the RLock that c holds.",
                "c waits for the RLock that b holds.",
            ],
            (("b", "the RLock that c holds"), ("c", "the RLock that b holds")),
        ),
        (
            ["This thread itself holds it: a deadlock with itself."],
            (("MainThread", "the lock that MainThread holds"),),
        ),
    ],
    ids=["two", "behind a circle", "itself"],
)
def test_claims_of_threads_are_read_from_evidence(evidence, cycle):
    stall = {"thread": "MainThread", "evidence": [*evidence, "9 of 9 samples slept in futex."]}
    assert claims({"stalls": [stall, stall | {"evidence": ["It slept."]}]}) == (Claim(cycle=cycle),)


def test_false_alarms_and_shares_decide():
    right = Verdict(kind=LEAK, claims=(LEAKED,), seconds=9.0)
    wrong = Verdict(kind=LEAK, claims=(LEAKED, Claim(cycle=WAITS)), seconds=9.0)
    quiet = Verdict(kind=CONTROL, claims=(), seconds=None)
    alarm = Verdict(kind=CONTROL, claims=(LEAKED,), seconds=9.0)
    assert wrong.detected
    assert not wrong.right
    assert sums([right, quiet]).met
    assert sums([right] * 19 + [wrong, quiet]).met
    assert not sums([right] * 18 + [wrong, quiet]).met
    assert not sums([right, alarm]).met


@pytest.mark.native
def test_two_kinds_and_a_control_play():
    wanted = {"two_transfers", "deadlock_two_locks", "a_busy_lock"}
    # What is to be reported comes when there is a core for it.
    patient, quiet = Stage(at_once=3, starting=3, limit_s=120), Stage(at_once=3, starting=3, limit_s=8)

    async def play():
        kinds = [kind for kind in read_all() if kind.name in wanted]
        return await asyncio.gather(*((quiet if one.is_control else patient).play(one) for one in kinds))

    found = asyncio.run(play())
    assert {one.kind.name: bool(one.claims) for one in found} == dict.fromkeys(wanted, True) | {
        "a_busy_lock": False
    }
    assert all(one.right for one in found)
