"""A program with asyncio on Qt's loop has one lane; each block is seen once, as Qt's, with its own line."""

from __future__ import annotations

import textwrap

import pytest
from tests.program.watching import PROGRAMS, Watched, not_by_the_host, unexplained

from .needing import needs, needs_module

pytestmark = pytest.mark.native

PROGRAM = """
import asyncio, sys, time
from {binding} import QtWidgets

sys.path.insert(0, sys.argv[1])
from blocking import until_sampled

def in_a_callback():
    for seconds in until_sampled(0.2):
        time.sleep(seconds)

def in_a_task():
    for seconds in until_sampled(0.2):
        time.sleep(seconds)

async def main():
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0.01)
    in_a_task()
    called = asyncio.Event()
    loop.call_later(0.01, lambda: (in_a_callback(), called.set()))
    await called.wait()
    await asyncio.sleep(3)  # the loop waits: nothing blocks it

app = QtWidgets.QApplication([])
{run}
"""
QASYNC = """
import qasync
loop = qasync.QEventLoop(app)
asyncio.set_event_loop(loop)
with loop:
    loop.run_until_complete(main())
"""
QT_S_OWN = """
from PySide6 import QtAsyncio
QtAsyncio.run(main(), keep_running=False)
"""


@pytest.mark.parametrize(
    ("binding", "library", "run"),
    [
        ("PySide6", "qasync", QASYNC),
        ("PyQt6", "qasync", QASYNC),
        ("PySide6", "PySide6.QtAsyncio", QT_S_OWN),
    ],
    ids=["qasync, PySide6", "qasync, PyQt6", "QtAsyncio"],
)
def test_a_block_is_one_stall_of_qt_s(tmp_path, monkeypatch, binding, library, run):
    needs(binding)
    needs_module(library)
    monkeypatch.setenv("QT_API", binding.lower())
    watched = Watched(store=tmp_path / "store", engine="native")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).format(binding=binding, run=run))
    watched.run(program, PROGRAMS, cwd=tmp_path)
    report = watched.report()
    (session,) = report["sessions"]
    assert [loop["kind"] for loop in session["loops"]] == ["qt"]
    stalls = not_by_the_host(report["stalls"])
    functions = [(stall["culprit"] or {}).get("function") for stall in stalls]
    assert functions.count("in_a_task") == functions.count("in_a_callback") == 1
    assert {stall["loop"] for stall in stalls} == {"qt"}
    others = [
        stall for stall, name in zip(stalls, functions, strict=True) if not str(name).startswith("in_a_")
    ]
    assert all(stall["duration_ms"] < 3000 for stall in unexplained(others))
