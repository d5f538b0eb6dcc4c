"""Windows of Tk and Qt under the portable engine, on real toolkits.

Blocks last until they were sampled, so that nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.loops.qt.needing import BINDINGS, needs
from tests.loops.tk.x_server import x_server
from tests.program.watching import is_by_the_host, not_by_the_host

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


def blocks_of(report: dict[str, Any]) -> list[str]:
    """What the blocks were called, in their order."""
    stalls = [one for one in report["stalls"] if (one["culprit"] or {}).get("function") == "blocks"]
    assert {one["culprit"]["source"].strip() for one in stalls} == {"time.sleep(0.15)"}
    return [one["callback"]["name"] for one in sorted(stalls, key=lambda one: one["began_at"])]


def assert_blocks(report: dict[str, Any], names: list[str]) -> None:
    """They are told in this order, but for those that the host is to blame for."""
    found = blocks_of(report)
    told = [(one["callback"], one["cause"], one["culprit"], is_by_the_host(one)) for one in report["stalls"]]
    of_the_host = {(callback or {}).get("name") for callback, *_, is_its in told if is_its}
    assert found == [name for name in names if name in found or name not in of_the_host], told


def assert_waits_are_none(report: dict[str, Any], facts: dict[str, Any]) -> None:
    """Neither that a window is open inside of a callback is a stall, nor what comes after the loop. A busy
    machine may make short ones of them."""
    for one in report["stalls"]:
        culprit = one["culprit"] or {}
        if culprit.get("function") == "opens":
            assert one["duration_ms"] < facts["open_ms"]
        assert (culprit.get("function"), culprit.get("source")) != ("<module>", "time.sleep(0.15)")


@pytest.mark.usefixtures("screen")
def test_commands_of_tk_that_block(watched, report):
    done = watched.run(PROGRAMS / "tk_blocks.py", "uninstalled")
    told = report()
    names = [
        "after: App.poll",
        ".send: App.on_click",
        ".field: on_press (<Button-1>)",
        "after: inside",
        "after: opens",
        "after_idle: refresh",
        "main",
    ]
    assert_blocks(told, names)
    facts = json.loads(done.stdout)
    assert_waits_are_none(told, facts)
    assert (facts["is_tkinters"], facts["is_own"]) == (True, True)
    kinds = {loop["kind"]: loop for loop in told["sessions"][0]["loops"]}
    assert set(kinds) == {"tk", "asyncio"}
    assert kinds["tk"]["callbacks"] >= len(blocks_of(told)) - 1


@pytest.mark.usefixtures("screen")
def test_a_loop_of_tk_that_the_program_turns_by_itself(watched, report):
    watched.run(PROGRAMS / "tk_by_hand.py")
    told = report()
    assert blocks_of(told) == [None]
    assert [loop["kind"] for loop in told["sessions"][0]["loops"]] == ["tk"]


@pytest.mark.parametrize(("binding", "way"), [(BINDINGS[0], "static"), (BINDINGS[1], "uninstalled")])
@pytest.mark.usefixtures("offscreen")
def test_slots_of_qt_that_block(watched, report, monkeypatch, binding, way):
    needs(binding)
    if way == "uninstalled":
        monkeypatch.setenv("QT_NO_GLIB", "1")
    done = watched.run(PROGRAMS / "qt_blocks.py", binding, way)
    told = report()
    assert_blocks(told, ["App.slow_slot", "inside", "opens"])
    facts = json.loads(done.stdout)
    assert_waits_are_none(told, facts)
    assert {one["loop"] for one in told["stalls"]} == {"qt"}
    assert done.stderr == ""
    assert facts.get("is_own") is (True if way == "uninstalled" else None)


@pytest.mark.usefixtures("offscreen")
def test_an_application_of_qts_that_runs_already_is_joined(watched, report):
    binding = BINDINGS[0]
    needs(binding)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [sys.executable, PROGRAMS / "qt_joined.py", binding, str(watched.store)],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert blocks_of(report()) == ["block"]


@pytest.mark.parametrize("binding", BINDINGS[:2])
@pytest.mark.usefixtures("offscreen")
def test_a_signal_handlers_error_leaves_exec(watched, report, binding):
    needs(binding)
    done = watched.run(PROGRAMS / "qt_signals.py", binding)
    assert done.stderr.splitlines() == ["QCoreApplication::exec: Must be called from the main thread"]
    assert json.loads(done.stdout) == [-1, "KeyboardInterrupt", "AlarmError"]
    # The timer has run on: otherwise the thread would seem busy from the signal to the end, 2 s later.
    assert all(stall["duration_ms"] < 1_800 for stall in not_by_the_host(report()["stalls"]))
