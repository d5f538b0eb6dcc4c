"""A window of Tk in which nothing blocks is no stall."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loops.blocked import assert_paused
from tests.program.watching import Watched, unexplained

pytestmark = pytest.mark.native

QUIET = Path(__file__).parent / "quiet_window.py"


def test_idle_and_animated_windows_are_no_stalls(tmp_path):
    watched = Watched(store=tmp_path / "store", engine="native")
    done = watched.run(QUIET)
    report = watched.report()
    (session,) = report["sessions"]
    (loop,) = session["loops"]
    frames, paused_ms = map(int, done.stdout.split())
    assert frames >= 60
    assert loop["kind"] == "tk"
    assert unexplained(report["stalls"]) == []
    assert_paused(loop, report["stalls"], paused_ms)
