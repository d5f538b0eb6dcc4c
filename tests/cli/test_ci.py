"""loopcanary ci."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.building.stalls import MS, SESSION
from tests.cli.conftest import Run
from tests.program.watching import PROGRAMS

from loopcanary.cli import main
from loopcanary.cli.ci_settings import ci_settings
from loopcanary.report.ci.budget import Budget, judged

pytestmark = pytest.mark.native
Captured = pytest.CaptureFixture[str]

STALLS = f"""import asyncio, sys, time; sys.path.append({str(PROGRAMS)!r}); from blocking import until_sampled
async def main():
    for seconds in until_sampled(0.5): time.sleep(seconds)
asyncio.run(main())
"""
BUDGET = """
[tool.loopcanary]
threshold = "50ms"
[tool.loopcanary.ci]
longest_stall = "200ms"
p99_delay = "10s"
stalled_share = "100%"
new_bugs = 5
markdown = "found.md"
sarif = "found.sarif"
"""


def test_a_broken_limit_ends_with_70_and_the_reason(loopcanary: Run, place: Path) -> None:
    (place / "pyproject.toml").write_text(BUDGET)
    (place / "app.py").write_text(STALLS)
    result = loopcanary("ci", "--", sys.executable, "app.py")
    assert result.returncode == 70, result.stderr
    assert "loopcanary: longest stall: " in result.stderr
    assert "allowed 200 ms: time.sleep(seconds) in main (app.py:3)" in result.stderr
    assert "1 limit of the budget exceeded" in result.stdout
    assert "time.sleep(seconds)" in (place / "found.md").read_text()
    assert json.loads((place / "found.sarif").read_text())["runs"][0]["results"]


def test_the_commands_own_status_comes_first(loopcanary: Run, place: Path) -> None:
    (place / "pyproject.toml").write_text(BUDGET)
    (place / "app.py").write_text(STALLS + "raise SystemExit(3)")
    assert loopcanary("ci", "--", sys.executable, "app.py").returncode == 3
    assert loopcanary("ci", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9
    result = loopcanary("ci", "--", "no-such-command")
    assert (result.returncode, result.stderr) == (
        127,
        "loopcanary: no-such-command: command not found\n",
    )


def test_within_the_budget_all_is_well(loopcanary: Run, place: Path) -> None:
    (place / "loopcanary.toml").write_text('[ci]\np99_delay = "60s"\n')
    result = loopcanary("ci", "--", sys.executable, "-c", "import asyncio; asyncio.run(asyncio.sleep(0))")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Within the budget" in result.stdout


# Longer than all of the start before it, however busy the machine is.
SLOW = """
import os, time
started_s = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
time.sleep(max(0.3, 1.5 * (time.clock_gettime(time.CLOCK_BOOTTIME) - started_s)))
"""


@pytest.mark.parametrize("keeper", ["0", "1"])
def test_a_start_that_takes_too_long_breaks_the_budget(loopcanary: Run, place: Path, keeper: str) -> None:
    (place / "loopcanary.toml").write_text('[ci]\nstartup = "250ms"\n')
    (place / "slow.py").write_text(SLOW)
    (place / "app.py").write_text("import slow\n")
    result = loopcanary("ci", "--", sys.executable, "app.py", LOOPCANARY_KEEPER=keeper)
    assert result.returncode == 70, result.stderr
    [line] = result.stderr.splitlines()
    assert line.startswith("loopcanary: start: ")
    assert ", allowed 250 ms: app.py: " in line
    assert "(the longest slow, " in line


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("longest_stall = 5", "longest_stall = 5 cannot be used"),
        ('stalled_share = "5"', "stalled_share = '5' cannot be used: write a share such as"),
        ("stalled_share = 2", "stalled_share = 2 cannot be used"),
        ("new_bugs = -1", "new_bugs = -1 cannot be used: write a whole number"),
        ("html = true", "html = True cannot be used: write a path"),
        ('longest_stal = "1s"', "ci.longest_stal is not a setting: use one of p99_delay, longest_stall"),
    ],
)
def test_a_wrong_budget_is_named(place: Path, capsys: Captured, table: str, words: str) -> None:
    (place / "loopcanary.toml").write_text(f"[ci]\n{table}\n")
    assert main(["ci", "--", "true"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert words in line


def test_paths_start_at_the_files_folder(place: Path) -> None:
    (place / "loopcanary.toml").write_text('[ci]\nhtml = "a.html"\nbaseline = "known.json"\n')
    (place / "inner").mkdir()
    found = ci_settings(str(place / "inner"))
    assert found.files == {"html": str(place / "a.html")}
    assert found.baseline == str(place / "known.json")
    (place / "loopcanary.toml").write_text('[ci]\nbaseline = "main:known.json"\n')
    assert ci_settings(str(place)).baseline == "main:known.json"


def test_the_worst_loop_and_bug_are_judged() -> None:
    budget = Budget(p99_delay_ns=6_700 * MS, longest_stall_ns=1, stalled_share=0.0, new_bugs=0)
    by_name = {limit.name: limit for limit in judged(budget, [SESSION], [], None, 1)}
    assert not by_name["loop delay p99"].is_broken
    assert by_name["loop delay p99"].where == "MainThread (asyncio)"
    assert not by_name["longest stall"].is_broken
    assert by_name["new bugs"].is_broken
    assert judged(Budget(), [SESSION], [], None, 3) == []
