"""What is told of programs whose loop never waits, and of those that only work hard."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.program.watching import Watched


def assert_spins_are_told(
    folder: Path, program: str, loop: str, names: set[str]
) -> subprocess.CompletedProcess[str]:
    """Each once, by these names, with its rounds and its time."""
    watched = Watched(store=folder / "store", engine="native")
    done = watched.run("-c", program)
    report = watched.report()
    issues = {issue["handler"]: issue for issue in report["issues"]}
    assert set(issues) == names
    for issue in issues.values():
        assert (issue["kind"], issue["loop"], issue["thread"]) == ("idle", loop, "MainThread")
        assert issue["runs"] >= 1_000
        assert issue["duration_ms"] > 1_000
    (session,) = report["sessions"]
    assert {work["name"]: work["spun_ms"] for work in session["idle"]} == pytest.approx(
        {name: issue["duration_ms"] for name, issue in issues.items()}
    )
    return done


def assert_nothing_spins(folder: Path, program: str) -> None:
    """No idle work is told of."""
    watched = Watched(store=folder / "store", engine="native")
    watched.run("-c", program)
    report = watched.report()
    (session,) = report["sessions"]
    assert [issue["title"] for issue in report["issues"] if issue["kind"] == "idle"] == []
    assert session["idle"] == []
