"""`make reports`: problems of public reports under loopcanary, as their reporters would have run them.

Each case has an environment of its own, with the pinned library. Its program runs under `loopcanary run`, and
what the report says of the stall is compared with the case's truth and with expected.toml: seen, line, cause,
advice. With `--mended` the second program of each case, which differs by the advice alone, must not stall.

1 if a control was reported, or advice was given that a case calls false.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
TREE = HERE.parents[1]
ENVIRONMENTS = TREE / "build/reports"
GIVES_UP_S = 120
SHORTEST_OF_TRUTH = 0.3
"""A stall that lasted for this part of the case's own figure is the one that is meant."""


Case = dict[str, Any]
"""A table of TOML."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was said of one case. None: not asked, since the stall was not seen, or no advice was given."""

    case: str
    seen: bool
    is_control: bool
    line: bool | None = None
    cause: bool | None = None
    advice: bool | None = None
    untrue: tuple[str, ...] = ()
    told: str = ""


def main() -> int:
    """Runs the cases that are asked for, and prints a row for each and the sums."""
    parser = argparse.ArgumentParser(prog="python -m reports", description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="*", help="of the names of cases")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--mended", action="store_true", help="the second program of each case")
    parser.add_argument("--json", type=Path, help="write the outcomes to this file, too")
    options = parser.parse_args()
    expected = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    outcomes = []
    for folder in sorted((HERE / "cases").iterdir()):
        if not (folder / "case.toml").exists() or not fnmatch(folder.name, options.pattern):
            continue
        case = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
        if options.mended and not (folder / "mended.py").exists():
            continue
        outcome = play(folder, case, expected.get(folder.name, {}), options.wheel, mended=options.mended)
        print(row(outcome), flush=True)
        outcomes.append(outcome)
    print(sums(outcomes))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1), encoding="utf-8")
    return int(any(one.untrue or (one.is_control and one.seen) for one in outcomes))


def play(folder: Path, case: Case, expected: Case, wheel: Path, *, mended: bool) -> Outcome:
    """Runs the program under loopcanary, and judges its report."""
    python = environment(case["requires"], wheel)
    env = {**os.environ, **case.get("environment", {}), "LOOPCANARY_CONSOLE": "off"}
    with TemporaryDirectory() as store:
        canary = [python, "-m", "loopcanary"]
        subprocess.run(
            [*canary, "run", "--store", store, "mended.py" if mended else "program.py"],
            cwd=folder,
            env=env,
            capture_output=True,
            timeout=GIVES_UP_S,
            check=False,
        )
        shown = subprocess.run(
            [*canary, "report", "--store", store, "--format", "json", "--limit", "0"],
            capture_output=True,
            text=True,
            check=False,
        )
    stalls = json.loads(shown.stdout)["stalls"] if shown.stdout else []
    return judge(folder.name, case, expected, stalls, is_well=mended or case["kind"] == "control")


def judge(
    name: str, case: Case, expected: Case, stalls: Sequence[dict[str, Any]], *, is_well: bool
) -> Outcome:
    """The longest stall against the truth; `is_well`: there must be none."""
    truth = case["truth"]
    least_ms = max(100.0, SHORTEST_OF_TRUTH * truth["stall_ms"])
    found = [
        one
        for one in stalls
        if one["cause"] != "host" and one["duration_ms"] >= least_ms and not one["startup"]
    ]
    if not found:
        return Outcome(case=name, seen=False, is_control=is_well)
    worst = max(found, key=lambda one: one["duration_ms"])
    source, advice = (worst["culprit"] or {}).get("source") or "", worst["advice"] or ""
    told = f"{worst['duration_ms']:.0f} ms {worst['cause']}: {worst['title']} | {source} | {advice}"
    if is_well:
        return Outcome(case=name, seen=True, is_control=True, told=told)
    lines = (truth["line"], *truth.get("line_also", ()))
    return Outcome(
        case=name,
        seen=True,
        is_control=False,
        line=any(line in source or (bool(source) and source in line) for line in lines),
        cause=worst["cause"] in expected["causes"],
        advice=any(words in advice for words in expected["says"]) if advice else None,
        untrue=tuple(words for words in expected["never"] if words in advice),
        told=told,
    )


def environment(requires: Sequence[str], wheel: Path) -> Path:
    """The interpreter of an environment with these distributions and loopcanary, made once."""
    folder = ENVIRONMENTS / sha256(" ".join(requires).encode()).hexdigest()[:12]
    python = folder / "bin/python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        install(python, *requires, "click", "rich")
        (folder / "ready").touch()
    install(python, "--force-reinstall", "--no-deps", str(wheel))
    return python


def install(python: Path, *words: str) -> None:
    """By pip. CalledProcessError: it failed; what it said is on stderr."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", *words], check=True, stdout=sys.stderr)


def row(outcome: Outcome) -> str:
    """One line, and what was told below it."""
    if outcome.is_control:
        return f"{outcome.case:26} {'FALSE ALARM ' + outcome.told if outcome.seen else 'well'}"
    words = {True: "yes", False: "NO", None: "-"}
    marks = {
        "seen": outcome.seen,
        "line": outcome.line,
        "cause": outcome.cause,
        "advice": outcome.advice,
    }
    said = " ".join(f"{name} {words[mark]:4}" for name, mark in marks.items())
    untrue = f"\n    untrue, or no help: {', '.join(outcome.untrue)}" if outcome.untrue else ""
    return f"{outcome.case:26} {said}{untrue}\n    {outcome.told}"


def sums(outcomes: Sequence[Outcome]) -> str:
    """`seen 11 of 12; line 9; cause 10; advice: precision 7 of 8, ...; false alarms 0 of 4`."""
    cases = [one for one in outcomes if not one.is_control]
    controls = [one for one in outcomes if one.is_control]
    said: list[str] = []
    if cases:
        right = sum(one.advice is True for one in cases)
        given = sum(one.advice is not None for one in cases)
        said = [
            f"seen {sum(one.seen for one in cases)} of {len(cases)}",
            f"line {sum(one.line is True for one in cases)}",
            f"cause {sum(one.cause is True for one in cases)}",
            f"advice: precision {right} of {given}, coverage {right} of {len(cases)}",
            f"untrue {sum(len(one.untrue) for one in cases)}",
        ]
    if controls:
        said.append(f"false alarms {sum(one.seen for one in controls)} of {len(controls)}")
    return "; ".join(said)


if __name__ == "__main__":
    sys.exit(main())
