"""Windows of Tk and Qt under the portable engine, on real toolkits.

Blocks last until they were sampled, so that nothing here depends on how fast the machine is. What a busy
machine does by itself has the cause `host`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.loops.qt.needing import BINDINGS, needs
from tests.loops.tk.x_server import x_server
from tests.program.watching import Watched

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def screen():
    pytest.importorskip("_tkinter", reason="this Python has no tkinter")
    with x_server() as display, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", display)
        yield


@pytest.fixture
def offscreen(monkeypatch):
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture
def watched(tmp_path):
    return Watched(store=tmp_path / "store", engine="portable")


def blocks_of(report: dict[str, Any]) -> list[str]:
    """What the blocks were called, in their order."""
    stalls = [one for one in report["stalls"] if (one["culprit"] or {}).get("function") == "blocks"]
    assert {one["culprit"]["source"].strip() for one in stalls} == {"time.sleep(0.15)"}
    return [one["callback"]["name"] for one in sorted(stalls, key=lambda one: one["began_at"])]


def culprits(report: dict[str, Any]) -> set[str]:
    """Of what the host did not do."""
    stalls = (one for one in report["stalls"] if one["cause"] != "host")
    return {(one["culprit"] or {}).get("function", "") for one in stalls}


@pytest.mark.usefixtures("screen")
def test_commands_of_tk_that_block(watched):
    done = watched.run(PROGRAMS / "tk_blocks.py", "uninstalled")
    report = watched.report()
    assert blocks_of(report) == [
        "after: App.poll",
        ".send: App.on_click",
        ".field: on_press (<Button-1>)",
        "after: inside",
        "after: opens",
        "after_idle: refresh",
        "main",
    ]
    # Neither a window that is open inside of a command, nor what comes after the loop.
    assert not culprits(report) & {"opens", "runs_asyncio", "<module>"}
    assert done.stdout.split("\n")[:2] == ["reported True", "tkinter's own True"]
    kinds = {loop["kind"]: loop for loop in report["sessions"][0]["loops"]}
    assert set(kinds) == {"tk", "asyncio"}
    assert kinds["tk"]["callbacks"] >= len(blocks_of(report)) - 1


@pytest.mark.usefixtures("screen")
def test_a_loop_of_tk_that_the_program_turns_by_itself(watched):
    watched.run(PROGRAMS / "tk_by_hand.py")
    report = watched.report()
    assert blocks_of(report) == [None]
    assert [loop["kind"] for loop in report["sessions"][0]["loops"]] == ["tk"]


@pytest.mark.parametrize(("binding", "way"), [(BINDINGS[0], "static"), (BINDINGS[1], "uninstalled")])
@pytest.mark.usefixtures("offscreen")
def test_slots_of_qt_that_block(watched, monkeypatch, binding, way):
    needs(binding)
    if way == "uninstalled":
        monkeypatch.setenv("QT_NO_GLIB", "1")
    done = watched.run(PROGRAMS / "qt_blocks.py", binding, way)
    report = watched.report()
    assert blocks_of(report) == ["App.slow_slot", "inside", "opens"]
    assert not culprits(report) & {"opens", "<module>"}
    assert {one["loop"] for one in report["stalls"]} == {"qt"}
    assert done.stderr == ""
    assert done.stdout == ("Qt's own True\n" if way == "uninstalled" else "")


@pytest.mark.usefixtures("offscreen")
def test_an_application_of_qts_that_runs_already_is_joined(tmp_path):
    binding = BINDINGS[0]
    needs(binding)
    store = tmp_path / "store"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [sys.executable, PROGRAMS / "qt_joined.py", binding, str(store)],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert blocks_of(Watched(store=store, engine="portable").report()) == ["block"]
