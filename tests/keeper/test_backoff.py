from __future__ import annotations

from loopcanary.keeper.kept_store import Backoff


def test_each_failure_waits_twice_as_long_until_one_succeeds():
    tries = Backoff(10, 50)
    assert not tries.holds(0)
    waits = []
    for now in (0, 100, 200, 300):
        tries.fail(now)
        waits.append((tries.until_ns or 0) - now)
    assert waits == [10, 20, 40, 50]
    assert (tries.holds(349), tries.holds(350)) == (True, False)
    tries.succeed()
    assert (tries.until_ns, tries.failures) == (None, 0)
    for _ in range(1_000):
        tries.fail(0)
    assert tries.until_ns == 50
