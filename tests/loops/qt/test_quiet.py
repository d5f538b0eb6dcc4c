"""Windows of Qt in which nothing blocks are no stalls."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.loops.blocked import assert_paused
from tests.program.watching import Watched, unexplained

from .needing import BINDINGS, needs

pytestmark = pytest.mark.native

QUIET = Path(__file__).parent / "quiet_window.py"


@pytest.mark.parametrize("glib", ["1", "0"], ids=["glib", "without-glib"])
@pytest.mark.parametrize("binding", BINDINGS)
def test_idle_and_animated_windows_are_no_stalls(tmp_path, monkeypatch, binding, glib):
    needs(binding)
    if glib == "0":
        monkeypatch.setenv("QT_NO_GLIB", "1")
    watched = Watched(store=tmp_path / "store", engine="native")
    done = watched.run(QUIET, binding)
    report = watched.report()
    (session,) = report["sessions"]
    (loop,) = session["loops"]
    frames, paused_ms = map(int, done.stdout.split())
    assert frames >= 60
    assert loop["kind"] == "qt"
    assert unexplained(report["stalls"]) == []
    assert_paused(loop, report["stalls"], paused_ms)
