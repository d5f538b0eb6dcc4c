"""`make deadlocks`, or in benchmarks/ `python -m zoo.deadlocks`: plays all kinds, and says what was found.

0 where all goals are met.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from fnmatch import fnmatch

from zoo.deadlocks.catalogue import Scenario, read_all
from zoo.deadlocks.play import Stage
from zoo.deadlocks.scoring import FALSE_ALARMS_MAX, GOALS, Sums, Verdict, sums


def main() -> int:
    """Plays what is asked for."""
    parser = argparse.ArgumentParser(prog="zoo.deadlocks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", default="*", metavar="PATTERN", help="only those with such a name")
    parser.add_argument("--at-once", type=int, default=32, metavar="N", help="programs, most of which sleep")
    parser.add_argument("--starting", type=int, default=2, metavar="N", help="programs that start at once")
    parser.add_argument("--by-default", action="store_true", help="without the option --locks")
    asked = parser.parse_args()
    kinds = [kind for kind in read_all() if fnmatch(kind.name, asked.kind)]
    stage = Stage(at_once=asked.at_once, starting=asked.starting, by_default=asked.by_default)
    found = asyncio.run(_play(kinds, stage))
    failed = [one for one in found if isinstance(one, RuntimeError)]
    print(*(f"FAILED: {error}" for error in failed), sep="\n")
    found = [one for one in found if isinstance(one, Verdict)]
    print(f"{'kind':36}{'reported':12}{'right':8}seconds")
    for verdict in found:
        print(_row(verdict), flush=True)
    print(*_totals(sums(found)), sep="\n")
    return 0 if sums(found).met and not failed else 1


async def _play(kinds: Sequence[Scenario], stage: Stage) -> list[Verdict | BaseException]:
    """What failed is among them: a program that is cancelled while it is made may never be seen to end."""
    return await asyncio.gather(*(stage.play(kind) for kind in kinds), return_exceptions=True)


def _row(verdict: Verdict) -> str:
    kind = verdict.kind
    told = "leak" if any(claim.leaked for claim in verdict.claims) else "deadlock" if verdict.claims else "-"
    right = "yes" if verdict.right else "no"
    seconds = "" if verdict.seconds is None else f"{verdict.seconds:.1f}"
    notes = []
    if kind.unseen:
        notes.append(f"not counted: {kind.unseen}")
    if right == "no":
        notes += [f"said: {claim}" for claim in verdict.claims]
    return f"{kind.name:36}{told:12}{right:8}{seconds:9}{'; '.join(notes)}".rstrip()


def _totals(sums: Sums) -> list[str]:
    shares = {"detected": sums.detected, "right": sums.right}
    lines = [
        f"{what}: {count} of {sums.kinds}, {count / max(sums.kinds, 1):.1%} (goal: {GOALS[what]:.0%})"
        for what, count in shares.items()
    ]
    return [
        "",
        *lines,
        f"false alarms: {sums.false_alarms} in {sums.controls} controls (goal: {FALSE_ALARMS_MAX})",
        f"not counted: {sums.unseen}, which docs/how-to/locks.md says are not found",
        f"CPython {sys.version.split()[0]}: {'all goals are met' if sums.met else 'not all goals are met'}",
    ]


if __name__ == "__main__":
    sys.exit(main())
