"""Windows of Qt Quick: what QML calls of Python's is blamed by line and name; what it shows are frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.loops.blocked import BlockedRun, assert_length
from tests.program.watching import PROGRAMS, Marks, Watched, admitted, unexplained, wall_ns

from .needing import needs_module

pytestmark = pytest.mark.native

PROGRAM = Path(__file__).parent / "quick_window.py"
MARKS = Marks(PROGRAM.read_text())
LONG_MS = 250
REST_MS = 700
BLOCKS = {
    # kind: (the culprit's mark and function, the callback's name or its end)
    "click": ("order", "QQuickMouseArea: MouseButtonRelease"),
    "timer_of_qml": ("poll", "QQmlTimer: event 1002"),
    "binding": ("_total", ""),
    "made_by_qml": ("timerEvent", "QObject: Timer"),
    "animation": ("freeze", ""),
}


class QuickRun(BlockedRun):
    """One run of the program with one binding and one of Quick's render loops, without a GPU."""

    def __init__(
        self, folder: Path, patch: pytest.MonkeyPatch, binding: str, render_loop: str, *kinds: str
    ) -> None:
        needs_module(f"{binding}.QtQuick")
        patch.setenv("QT_QUICK_BACKEND", "software")
        patch.setenv("QSG_RENDER_LOOP", render_loop)
        watched = Watched(store=folder / "store", engine="native")
        truth_file = folder / "truth.json"
        watched.run(PROGRAM, PROGRAMS, binding, truth_file, *kinds, cwd=folder)
        super().__init__(truth_file, watched.report())

    def scene(self, title: str) -> dict[str, Any]:
        """What the windows with that title showed."""
        (session,) = self.report["sessions"]
        (found,) = [each for each in session["frames"] if each["scene"] == title]
        return found


@pytest.mark.parametrize(("binding", "render_loop"), [("PySide6", "threaded"), ("PyQt6", "basic")])
def test_what_qml_calls_is_seen_when_it_blocks(tmp_path, monkeypatch, binding, render_loop):
    run = QuickRun(tmp_path, monkeypatch, binding, render_loop, *BLOCKS)
    for kind, (function, name) in BLOCKS.items():
        stall = assert_length(run, kind)
        found = (stall["culprit"]["function"], stall["culprit"]["line"])
        assert found == MARKS.find(f"culprit of {function}")
        assert stall["cause"] in admitted(stall, ("sleep",)), stall["evidence"]
        assert stall["callback"]["name"].endswith(name)
        assert ": " in stall["callback"]["name"]
        assert (stall["loop"], stall["scene"]) == ("qt", "the shop")
    shop = run.scene("the shop")
    # One interval is the frame's own.
    assert shop["dropped"] >= LONG_MS * 60 // 1_000 - 1
    assert shop["worst_ms"] >= LONG_MS
    janks = [issue for issue in run.report["issues"] if issue["kind"] == "jank"]
    behind = {stall for issue in janks for stall in issue["stall_ids"]}
    assert run.stall_of("animation")["id"] in behind


def test_windows_at_rest_and_animations_are_no_stalls(tmp_path, monkeypatch):
    run = QuickRun(tmp_path, monkeypatch, "PySide6", "basic", "quiet")
    quiet = run.truth["quiet"]
    # The window's start is not asked for: a busy machine takes its time for it.
    stalls = [stall for stall in run.stalls if wall_ns(stall["began_at"]) >= quiet["wall_before_ns"]]
    assert unexplained(stalls) == []
    shop = run.scene("the shop")
    assert quiet["swaps"] <= shop["frames"]
    assert 0 < shop["fps"] <= shop["refresh_hz"]
    assert run.scene("another")["frames"] >= 1
    # What it rested is no frame's time.
    assert shop["frame_ms"] < (quiet["after_ns"] - quiet["before_ns"]) / 1e6 - REST_MS
