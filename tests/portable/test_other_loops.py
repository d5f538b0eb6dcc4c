"""Loops that tell by hooks what they do, under the portable engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


def blocks_of(report):
    stalls = sorted(report["stalls"], key=lambda one: one["began_at"])
    return [one for one in stalls if (one["culprit"] or {}).get("function") == "blocks"]


def assert_blocks(report, kind, *names):
    """The blocks were seen, in this order, each once."""
    blocks = blocks_of(report)
    assert {one["culprit"]["source"].strip() for one in blocks} == {"time.sleep(0.15)"}
    assert [one["callback"] for one in blocks] == [{"name": name, "task": task} for name, task in names]
    assert {loop["kind"] for loop in report["sessions"][0]["loops"]} == {kind}
    return report["sessions"][0]["loops"]


def test_steps_of_trio_that_block(watched, report):
    pytest.importorskip("trio")
    done = watched.run(PROGRAMS / "trio_blocks.py", "uninstalled")
    told = report()
    (loop,) = assert_blocks(told, "trio", ("handler", "Order 7"))
    assert blocks_of(told)[0]["scene"] == "orders"
    assert min(loop["callbacks"], loop["turns"]) > 3
    assert (done.stdout, done.stderr) == ("trio's own True\n", "")


def test_runs_of_trio_that_go_on_already_are_joined(watched, report):
    pytest.importorskip("trio")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    done = subprocess.run(
        [sys.executable, PROGRAMS / "trio_joined.py", str(watched.store)],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert (done.returncode, done.stderr) == (0, "")
    names = ("elsewhere", "__main__.elsewhere"), ("main", "__main__.main")
    assert len(assert_blocks(report(), "trio", *names)) == 2


def test_calls_of_twisteds_own_reactors_that_block(watched, report):
    pytest.importorskip("twisted")
    watched.run(PROGRAMS / "twisted_blocks.py")
    (loop,) = assert_blocks(report(), "twisted", ("App.poll", None))
    assert loop["turns"] >= 2


def test_frames_of_a_game_that_block(watched, report):
    pytest.importorskip("pygame", exc_type=ImportError)
    watched.run(PROGRAMS / "game_blocks.py")
    told = report()
    (loop,) = assert_blocks(told, "pygame", ("frame", None))
    assert loop["callbacks"] > 6
    assert [one["frames"] >= 6 for one in told["sessions"][0]["frames"]] == [True]
