"""A program whose tasks wait for each other, killed: the report has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "deadlocks"
GIVES_UP_S = 280


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
def test_a_deadlock_is_reported_and_outlives_its_program(tmp_path, engine):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    command = [sys.executable, "-m", "loopcanary", "run", "--locks", "--engine", engine]
    with subprocess.Popen(
        [*command, str(EXAMPLES / "opposite_order.py")],
        cwd=tmp_path,
        env=clean,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        said = next(line for line in child.stderr if "deadlock" in line)
        child.kill()
    assert "2 tasks wait for each other: pay, refund" in said

    def asked(*words: str) -> str:
        asks = [sys.executable, "-m", "loopcanary", *words]
        done = subprocess.run(
            asks, cwd=tmp_path, env=clean, capture_output=True, text=True, check=True, timeout=GIVES_UP_S
        )
        return done.stdout

    (issue,) = json.loads(asked("report", "--format", "json"))["issues"]
    told = "pay holds Lock 'Bank.accounts' and waits for Lock 'Bank.ledger'"
    assert all(
        told in " ".join(asked("show", issue["id"], "--format", form).split())
        for form in ("text", "markdown")
    )
    assert issue["kind"] == "deadlock"
    pay, refund = issue["cycle"]
    assert pay["task"] == "pay"
    assert (pay["holds"], pay["waits_for"]) == ("Lock 'Bank.accounts'", "Lock 'Bank.ledger'")
    assert refund["frames"][0]["function"] == "refund"
    assert issue["culprit"]["in_app"]
