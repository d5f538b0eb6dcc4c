"""Runs the tests on every CPython that loopcanary supports, and says how each of them went.

A version that cannot be had is skipped, with the reason; with --require it fails the run. Each has a virtual
environment and a build folder of its own in the tree, so that a second run is quick.

Versions of this machine and of the Debian root run at once, each side one after the other: the tests wait
more than they compute. What a version printed then comes when it is through. The tests that need a machine to
themselves follow, one version at a time; with --in-pairs they, too, of both sides at once: a core for each.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from interpreters import SID_ROOT, VERSIONS, Interpreter, find, find_here, outside_make
from sid_root import SidRootError

# pytest's closing line: "=== 12 passed, 1 skipped in 3.45s ===".
_CLOSING_LINE = re.compile(r"^=+ (.*\bin \d[\d.]*s.*?) =+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one version went; `passed` is None where it could not be tried."""

    version: str
    passed: bool | None
    details: tuple[str, ...]

    def __str__(self) -> str:
        word = {True: "passed", False: "FAILED", None: "skipped"}[self.passed]
        return f"CPython {self.version}: {word}, {'; '.join(self.details)}"


def main() -> int:
    """Runs the versions asked for; 0 where none failed, nor with --require was skipped."""
    options = _options()
    versions = [version for version in options.versions if version not in options.skip]
    goals = [["prepare"]] if options.prepare else [["prepare", "test-crowd"], ["test-alone"]]
    outcomes: dict[str, Outcome] = {}
    for number, some in enumerate(goals):
        run = partial(_make, options=options, goals=some, outcomes=outcomes)
        if number == 0 or options.in_pairs:
            _at_once(versions, run)
        else:
            for version in versions:
                run(version)
    return _summarize([outcomes[version] for version in versions], require=options.require)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--versions", nargs="+", default=VERSIONS, choices=VERSIONS, metavar="X.Y")
    parser.add_argument("--skip", nargs="+", default=(), metavar="X.Y", help="versions tested otherwise")
    parser.add_argument("--require", action="store_true", help="fail where a version cannot be had")
    parser.add_argument("--in-pairs", action="store_true", help="the tests of test-alone two at a time")
    parser.add_argument("--prepare", action="store_true", help="make the environments, run no tests")
    parser.add_argument(
        "--make",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="such as TIER=every_python",
    )
    parser.add_argument(
        "--sid-root",
        type=Path,
        default=SID_ROOT,
        metavar="FOLDER",
        help="the Debian root, made where it is not there (default: $LOOPCANARY_SID_ROOT or %(default)s)",
    )
    return parser.parse_args()


def _at_once(versions: Sequence[str], run: Callable[[str], None]) -> None:
    """This machine's versions one after the other, and Debian's beside them."""
    here = [version for version in versions if find_here(version) is not None]
    sides = [here, [version for version in versions if version not in here]]

    def run_side(side: Sequence[str]) -> None:
        for version in side:
            run(version)

    with ThreadPoolExecutor(len(sides)) as pool:
        list(pool.map(run_side, sides))


def _make(
    version: str, options: argparse.Namespace, goals: Sequence[str], outcomes: dict[str, Outcome]
) -> None:
    """Adds to the version's outcome how these goals of make went; not where it could not be tried."""
    before = outcomes.get(version, Outcome(version=version, passed=True, details=()))
    if before.passed is None:
        return
    try:
        interpreter = find(version, options.sid_root)
    except SidRootError as error:
        outcomes[version] = Outcome(
            version=version, passed=None, details=(f"not on this machine, and {error}",)
        )
        return
    passed, detail = _run_make(interpreter, [*goals, *options.make])
    outcomes[version] = Outcome(
        version=version, passed=before.passed and passed, details=(*before.details, detail)
    )


_printing = threading.Lock()


def _run_make(interpreter: Interpreter, words: Sequence[str]) -> tuple[bool, str]:
    """Whether it passed, and pytest's closing line (or that there was none)."""
    venv = f".venv-{interpreter.version}"
    make = ["make", f"PYTHON={interpreter.path}", f"VENV={venv}", *words]
    done = subprocess.run(
        interpreter.command(make),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        env=outside_make(),
    )
    with _printing:
        print(f"\n== CPython {interpreter.version}\n{shlex.join(make)}\n{done.stdout}", flush=True)
    closing = [found[1] for line in done.stdout.splitlines() if (found := _CLOSING_LINE.match(line))]
    if closing:
        return done.returncode == 0, closing[-1]
    return done.returncode == 0, "ready" if done.returncode == 0 else "did not come to its tests"


def _summarize(outcomes: Sequence[Outcome], *, require: bool) -> int:
    print()
    for outcome in outcomes:
        print(outcome)
    verdicts = [outcome.passed for outcome in outcomes]
    counts = f"{verdicts.count(True)} passed, {verdicts.count(False)} failed"
    print(f"versions: {counts}, {verdicts.count(None)} skipped", flush=True)
    return 1 if False in verdicts or (require and None in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
