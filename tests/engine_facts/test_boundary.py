"""The line that is told when a part of ours fails."""

from __future__ import annotations

import pytest

from loopcanary import engine as boundary
from loopcanary.engine import Boundary


@pytest.mark.parametrize(
    ("part", "keep", "said"),
    [
        ("probe trio", False, "probe trio failed; trio is not watched, other loops are: OSError: no"),
        ("probe trio", True, "probe trio failed; trio may stay patched: OSError: no"),
        ("totals", True, "totals failed; figures may be missing; stalls are shown and stored: OSError: no"),
        ("interceptor mine", False, "interceptor mine failed and is switched off: OSError: no"),
    ],
)
def test_what_is_lost_and_what_is_not(caplog, part, keep, said):
    Boundary(pytest.fail).failed(part, OSError("no"), keep=keep)
    assert caplog.messages == [f"loopcanary: {said}"]


def test_a_failure_after_a_change_of_user_names_it(caplog, monkeypatch):
    user = iter([0, 0, 33])
    monkeypatch.setattr(boundary, "effective_user", lambda: next(user))
    told = Boundary(pytest.fail)
    told.failed("totals", OSError("no"), keep=True)
    told.failed("store", ModuleNotFoundError("No module named 'sqlite3'"), keep=True)
    assert "user" not in caplog.messages[0]
    assert "No module named 'sqlite3' (the program changed its user from 0 to 33, " in caplog.messages[1]
