"""Threads that wait for each other are seen from the one that stalls, while it does; others are not."""

from __future__ import annotations

import pytest

from .circled import MAIN, assert_circle, assert_no_circle, is_in_circle, stalled
from .watching import PROGRAMS

__all__ = ["stalled"]

CIRCLES = PROGRAMS / "circles.py"
SAMPLES = 12

TOLD = {
    "two_locks": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "two_rlocks_by_acquire": [(MAIN, "RLock", "other"), ("other", "RLock", MAIN)],
    "three_threads": [(MAIN, "lock", "second"), ("second", "lock", "third"), ("third", "lock", MAIN)],
    "join_in_the_lock": [(MAIN, "thread", "worker"), ("worker", "lock", MAIN)],
    "import_in_the_lock": [
        (MAIN, "import lock of wants_the_lock", "importer"),
        ("importer", "lock", MAIN),
    ],
    "result_of_a_pool": [(MAIN, "Future", "pool_0"), ("pool_0", "lock", MAIN)],
    "loop_that_has_not_begun": [(MAIN, "lock", "asker"), ("asker", "Future", MAIN)],
    "loop_that_has_begun": [(MAIN, "lock", "asker"), ("asker", "Future", MAIN)],
    "loop_of_its_own": [(MAIN, "Future", MAIN)],
    "behind_a_circle": [
        (MAIN, "lock", "first"),
        ("first", "lock", "second"),
        ("second", "lock", "first"),
    ],
    "context_managers": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "rlocks_of_context_managers": [(MAIN, "RLock", "other"), ("other", "RLock", MAIN)],
    "lock_with_a_timeout": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "other_lock_with_a_timeout": [(MAIN, "lock", "other"), ("other", "lock", MAIN)],
    "rlock_with_a_timeout": [(MAIN, "RLock", "other"), ("other", "RLock", MAIN)],
    "join_with_a_timeout": [(MAIN, "thread", "worker"), ("worker", "lock", MAIN)],
    "result_with_a_timeout": [(MAIN, "Future", "pool_0"), ("pool_0", "lock", MAIN)],
}
GIVES_UP = {
    "lock_with_a_timeout": [MAIN],
    "other_lock_with_a_timeout": ["other"],
    "rlock_with_a_timeout": [MAIN],
    "join_with_a_timeout": [MAIN],
    "result_with_a_timeout": [MAIN],
}
NONE = (
    "busy_lock",
    "chain_without_end",
    "opposite_order_in_time",
    "locks_by_acquire",
    "manager_that_let_go",
    "result_of_other_loop",
)

pytestmark = pytest.mark.native


@pytest.mark.parametrize("kind", TOLD)
def test_a_circle_is_seen_with_each_of_its_threads(stalled, kind):
    assert_circle(stalled(CIRCLES, kind, is_in_circle), TOLD[kind], GIVES_UP.get(kind, []))


@pytest.mark.parametrize("kind", NONE)
def test_what_is_no_circle_or_cannot_be_known_is_none(stalled, kind):
    assert_no_circle(
        stalled(
            CIRCLES,
            kind,
            lambda seen: sum(one.lock is not None for one in seen.samples[-SAMPLES:]) == SAMPLES,
        )
    )
