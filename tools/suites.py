"""Runs test suites of others plain and under `loopcanary run`, and says which tests went differently.

Suites are in suites.toml. Each has an environment of its own, build/suites/PYTHON/NAME, in which both sides
run, one after the other. A test that differs runs again, alone, on both sides; if that does not settle it,
its suite does. Status 1 where a test is different; suite_outcomes.py says what is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from extras import TREE
from interpreters import VERSIONS, find_here, outside_make
from suite_outcomes import ABSENT, Outcomes, Runs, Verdict, counted, differing
from suite_places import Place, Side, Suite
from suite_table import Difference, Row, lines, read_rows, with_row, write_page, write_rows

_SUITES = Path(__file__).with_suffix(".toml")
_BUILD = TREE / "build" / "suites"
# How often a suite runs if a test differed in it and not alone.
_WHOLE_RUNS = 3
# The statuses of a suite's processes count as the outcome of a test.
_STATUS = "(exit status)"


def main() -> int:
    """Runs what is asked for, and prints the table of these, or of all results there are."""
    known = {name: Suite(name=name, **table) for name, table in _tables().items()}
    options = _options([*known])
    results = options.results
    new: list[Row] = []
    for version in () if options.show else options.python:
        chosen = [known[name] for name in options.suite or known]
        for place in _prepared(version, [suite for suite in chosen if version in suite.pythons]):
            new.append(_compare(place, options.again))
            write_rows(results, with_row(read_rows(results), new[-1]))
            print("\n".join(lines(new[-1:])), flush=True)
    rows = read_rows(results)
    print("", *lines(rows if options.show else new), sep="\n", flush=True)
    if options.page:
        write_page(options.page, rows)
    return 1 if any(row.is_different for row in (rows if options.show else new)) else 0


def _options(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--suite", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--python", nargs="+", default=["3.12"], choices=VERSIONS, metavar="X.Y")
    parser.add_argument("--again", type=int, default=5, metavar="N", help="runs alone of what differed")
    parser.add_argument("--show", action="store_true", help="run nothing, show all results there are")
    parser.add_argument("--results", type=Path, default=_BUILD / "results.json", help="added to, by suite")
    parser.add_argument("--page", type=Path, help="the page of Markdown to put all results into")
    return parser.parse_args()


def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_SUITES.read_text(encoding="utf-8"))


def _prepared(version: str, suites: Sequence[Suite]) -> Iterator[Place]:
    """Each suite's place, made when it is asked for."""
    interpreter = find_here(version)
    if interpreter is None:
        sys.exit(f"CPython {version} is not on this machine")
    make = ["make", "install", f"PYTHON={interpreter.path}", f"VENV=.venv-{version}"]
    subprocess.run(make, cwd=TREE, env=outside_make(), check=True)
    (wheel,) = (TREE / "build" / f"venv-{version}" / "dist").glob("loopcanary-*.whl")
    for suite in suites:
        print(f"== {suite.name} on CPython {version}", flush=True)
        place = Place(suite, _BUILD / version / suite.name)
        place.prepare(interpreter.path, wheel)
        yield place


def _compare(place: Place, again: int) -> Row:
    """Both sides, and what differed."""
    plain, watched = Side(watched=False), Side(watched=True)
    first = _whole(place, plain), _whole(place, watched)
    cpu = plain.cpu_s, watched.cpu_s
    processes, turns = place.what_was_watched()
    tests = {name: outcome for name, outcome in first[0].items() if name != _STATUS}
    return Row(
        suite=place.suite.name,
        version=place.version,
        python=place.python_version,
        tests=len(tests),
        outcomes=counted(tests),
        cpu_plain_s=cpu[0],
        cpu_watched_s=cpu[1],
        processes=processes,
        turns=turns,
        differences=tuple(_differences(place, (plain, watched), first, again)),
    )


def _whole(place: Place, side: Side) -> Outcomes:
    outcomes = place.whole(side)
    return outcomes | {_STATUS: " ".join(map(str, side.statuses))}


def _differences(
    place: Place, sides: tuple[Side, Side], first: tuple[Outcomes, Outcomes], again: int
) -> list[Difference]:
    """What differed in the first runs, with the outcomes of all further ones."""
    names = differing(*first)
    if len(names) > 1 and _STATUS in names:  # which it is because of the others
        names.remove(_STATUS)
    alone = {
        name: [tuple(place.alone(side, name) for _ in range(again)) for side in sides]
        for name in names
        if name != _STATUS
    }
    wholes = [first]

    def runs(name: str, side: int) -> Runs:
        whole = tuple(outcomes[side].get(name, ABSENT) for outcomes in wholes)
        return Runs(whole=whole, alone=alone[name][side] if name in alone else ())

    while True:
        found = [Difference(test=name, plain=runs(name, 0), watched=runs(name, 1)) for name in names]
        decided = all(one.verdict is not Verdict.UNDECIDED for one in found)
        if decided or len(wholes) == _WHOLE_RUNS:
            return found
        wholes.append((_whole(place, sides[0]), _whole(place, sides[1])))


if __name__ == "__main__":
    sys.exit(main())
