"""A main loop of GLib in which nothing blocks is no stall."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.loops.blocked import assert_paused
from tests.program.watching import Watched, unexplained

pytestmark = pytest.mark.native

QUIET = Path(__file__).parent / "quiet_loop.py"


def test_idle_inner_and_animated_loops_are_no_stalls(interpreter, tmp_path):
    seen = json.loads(interpreter.run(QUIET, tmp_path / "store").splitlines()[-1])
    report = Watched(store=tmp_path / "store", engine="native").report()
    assert unexplained(report["stalls"]) == []
    assert (seen["frames"], seen["loop"]["kind"]) == (60, "glib")
    assert_paused(seen["loop"], report["stalls"], seen["paused_ms"])
