"""A window of GTK 3: its loop, its modal dialogs and its applications."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.loops.slept import by_sleep
from tests.program.watching import Watched

pytestmark = pytest.mark.native

HERE = Path(__file__).parent


def seen(
    interpreter: Any, program: Path, store: Path
) -> tuple[dict[str, Any], dict[str, str], list[dict[str, Any]]]:
    """Of each block, by its function: its stall, and its callback's name; and the input that lagged. What
    else is slow is GTK's own, such as a server that is asked and does not run."""
    told = interpreter.run(program, store)
    report = Watched(store=store, engine="native").report()
    stalls = by_sleep(report, json.loads(told.splitlines()[-1]))
    names = {function: stall["callback"]["name"] for function, stall in stalls.items()}
    return stalls, names, [issue for issue in report["issues"] if issue["kind"] == "input"]


@pytest.mark.parametrize("gtk", [3], indirect=True)
@pytest.mark.usefixtures("gtk")
def test_a_window_a_dialog_and_an_application(interpreter, tmp_path):
    stalls, names, lags = seen(interpreter, HERE / "gtk_window.py", tmp_path / "store")
    assert names == {
        "on_clicked": "clicked: on_clicked",
        "with_dialog": "timeout: with_dialog",
        "slow": "timeout: Application.slow",
    }
    assert stalls["on_clicked"]["scene"] == "window"
    assert "clicked: on_clicked (ButtonRelease)" in {lag["event"] for lag in lags}


@pytest.mark.parametrize("gtk", [4], indirect=True)
@pytest.mark.usefixtures("gtk")
def test_windows_of_gtk_4(interpreter, tmp_path):
    stalls, names, lags = seen(interpreter, HERE / "gtk4_window.py", tmp_path / "store")
    assert names == {
        "on_clicked": "clicked: Orders.on_clicked",
        "on_response": "response: Orders.on_response",
        "wait_for_it": "idle: Orders.wait_for_it",
    }
    assert [stalls[function]["scene"] for function in ("on_clicked", "on_response")] == ["Orders", "Sure"]
    clicks = [lag for lag in lags if lag["event"] == "clicked: Orders.on_clicked (ButtonRelease)"]
    # It clicks until one has arrived; those that came too late are the other window's.
    assert any(lag["scene"] == "Orders" and lag["duration_ms"] >= 250 for lag in clicks)


@pytest.mark.parametrize("gtk", [3, 4], indirect=True)
@pytest.mark.usefixtures("gtk")
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param("gtk_beside.py", ["MainThread"], id="on-their-own-thread"),
        pytest.param("gtk_leaves.py", ["gone", "goes on"], id="by-an-engine-that-stops-meanwhile"),
    ],
)
def test_windows_are_looked_at(request, interpreter, tmp_path, program, expected):
    version = f"{request.node.callspec.params['gtk']}.0"
    told = interpreter.run(HERE / program, tmp_path / "store", version)
    assert json.loads(told.splitlines()[-1]) == expected
