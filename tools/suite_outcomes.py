"""How tests of others went, plain and watched: read, compared and judged."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

Outcomes = dict[str, str]
"""By a test's id: passed, skipped, failed; no end where it began only."""

ABSENT = "absent"
"""The outcome of a test that the other side alone has."""

# The worst that is known of a test counts.
_RANK = ("begun", "passed", "skipped", "failed")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


class Verdict(StrEnum):
    """What to make of a test that once differed."""

    FLAKY = "flaky"
    """Plain runs showed more than one outcome, and watched it passed at least once."""

    ONCE = "once"
    """One run differed from all others, of both sides."""

    UNDECIDED = "undecided"
    """One run differed from all others, and the suite as a whole ran only once."""

    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """A test's outcomes in one way of running: `whole` in runs of its suite, `alone` by itself."""

    whole: tuple[str, ...]
    alone: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return self.whole + self.alone

    def __str__(self) -> str:
        """Such as "failed 2 of 6, passed 4 of 6"."""
        counts = sorted(Counter(self.all).items())
        return ", ".join(f"{name} {n} of {len(self.all)}" for name, n in counts)


def read(lines: Iterable[str]) -> Outcomes:
    """What tools/suite_recorder.py wrote. Addresses in ids are made equal."""
    found: Outcomes = {}
    for line in lines:
        name, outcome = json.loads(line)
        name = _ADDRESS.sub("0x", name)
        found[name] = max(found.get(name, outcome), outcome, key=_RANK.index)
    return {name: "no end" if outcome == "begun" else outcome for name, outcome in found.items()}


def differing(plain: Outcomes, watched: Outcomes) -> list[str]:
    """Ids of the tests that went differently, or that only one side has."""
    names = dict.fromkeys([*plain, *watched])
    return [name for name in names if plain.get(name, ABSENT) != watched.get(name, ABSENT)]


def without(outcomes: Outcomes, left_out: Mapping[str, str]) -> Outcomes:
    """All but those whose id begins with one that is left out."""
    return {
        name: outcome
        for name, outcome in outcomes.items()
        if not any(name.startswith(prefix) for prefix in left_out)
    }


def judge(plain: Runs, watched: Runs) -> Verdict:
    """The verdict on a test that differed in the first run of its suite."""
    if len(set(plain.all)) > 1 and "passed" in watched.all:
        return Verdict.FLAKY
    outcomes = plain.all + watched.all
    if len(outcomes) - max(Counter(outcomes).values()) > 1:
        return Verdict.DIFFERENT
    return Verdict.ONCE if len(plain.whole) > 1 else Verdict.UNDECIDED


def counted(outcomes: Outcomes) -> str:
    """Such as "901 passed, 12 skipped"."""
    return ", ".join(f"{n:,} {name}" for name, n in Counter(outcomes.values()).most_common())
