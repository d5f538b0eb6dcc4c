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


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}


def said_of(program: Path, folder: Path, *options: str) -> str:
    """The line about the deadlock; the program is killed then."""
    command = [sys.executable, "-m", "loopcanary", "run", "--locks", *options, str(program)]
    with subprocess.Popen(
        command, cwd=folder, env=clean(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        said = next(line for line in child.stderr if "deadlock" in line)
        child.kill()
    return said


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio_is_found_when_the_program_loads_it(tmp_path, backend):
    text = (EXAMPLES / "anyio_group.py").read_text()
    program = tmp_path / "group.py"
    program.write_text(text.replace("anyio.run(main)", f"anyio.run(main, backend={backend!r})"))
    assert "2 tasks wait for each other: __main__.main, load users" in said_of(program, tmp_path)


@pytest.mark.parametrize("engine", [pytest.param("native", marks=pytest.mark.native), "portable"])
def test_a_deadlock_is_reported_and_outlives_its_program(tmp_path, engine):
    said = said_of(EXAMPLES / "opposite_order.py", tmp_path, "--engine", engine)
    assert "2 tasks wait for each other: pay, refund" in said

    def asked(*words: str) -> str:
        asks = [sys.executable, "-m", "loopcanary", *words]
        done = subprocess.run(
            asks, cwd=tmp_path, env=clean(), capture_output=True, text=True, check=True, timeout=GIVES_UP_S
        )
        return done.stdout

    found = json.loads(asked("report", "--format", "json"))["issues"]
    (issue,) = (one for one in found if one["kind"] != "startup")
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
    made = [[frame["function"] for frame in wait["made"]] for wait in (pay, refund)]
    assert made == [["__init__", "main"]] * 2
    assert pay["taken"]["function"] == "pay"
    assert pay["taken"]["line"] < pay["frames"][0]["line"]
    assert issue["culprit"]["in_app"]
