"""What was reported of a program, and whether it is true. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zoo.deadlocks.catalogue import Scenario

GOALS = {"detected": 0.95, "right": 0.95}
FALSE_ALARMS_MAX = 0
_THREADS = re.compile(r"(?:A deadlock: )?(.+?) waits? for (?:each other|itself)(?: until a timeout)?\.")
_OWN = "This thread itself holds it: a deadlock with itself."
_WAITS = re.compile(r"(.+?) waits (?:in .+ )?for (.+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A deadlock or a leak that was reported."""

    cycle: tuple[tuple[str, str], ...] = ()
    """Tasks or threads in the order in which they wait, and what each waits for."""
    leaked: str = ""
    holder: str = ""
    has_ended: bool = True

    def __str__(self) -> str:
        if self.leaked:
            return f"{self.leaked} of {self.holder}"
        return "; ".join(f"{name} waits for {what}" for name, what in self.cycle)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Of one program."""

    kind: Scenario
    claims: tuple[Claim, ...]
    seconds: float | None
    """From the begin of the program until the first report; None where there was none."""

    @property
    def detected(self) -> bool:
        """A deadlock as a deadlock, a leak as a leak."""
        return any(bool(claim.leaked) == bool(self.kind.leaked) for claim in self.claims)

    @property
    def right(self) -> bool:
        """The cycle or the holder, and nothing else; of a control, nothing."""
        if self.kind.is_control:
            return not self.claims
        return len(self.claims) == 1 and is_true(self.claims[0], self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Of all programs; kinds that are documented not to be seen are in none but the last one."""

    kinds: int
    detected: int
    right: int
    controls: int
    false_alarms: int
    unseen: int

    @property
    def met(self) -> bool:
        """Whether all goals are."""
        shares = {"detected": self.detected, "right": self.right}
        return self.false_alarms <= FALSE_ALARMS_MAX and all(
            shares[what] >= goal * self.kinds for what, goal in GOALS.items()
        )


def sums(verdicts: Sequence[Verdict]) -> Sums:
    """Counts what was right."""
    kinds = [one for one in verdicts if not one.kind.is_control and not one.kind.unseen]
    controls = [one for one in verdicts if one.kind.is_control]
    return Sums(
        kinds=len(kinds),
        detected=sum(one.detected for one in kinds),
        right=sum(one.right for one in kinds),
        controls=len(controls),
        false_alarms=sum(len(one.claims) for one in controls),
        unseen=len(verdicts) - len(kinds) - len(controls),
    )


def claims(report: Mapping[str, Any]) -> tuple[Claim, ...]:
    """Of the report in JSON: each deadlock, circle of threads and leak."""
    issues = [_of_tasks(issue) for issue in report.get("issues", ())]
    stalls = [_of_threads(stall) for stall in report["stalls"]]
    return tuple(claim for claim in (*issues, *stalls) if claim is not None)


def is_true(claim: Claim, kind: Scenario) -> bool:
    """Whether it says what is true about the program."""
    if kind.leaked:
        return kind.leaked in claim.leaked and (claim.holder, claim.has_ended) == (
            kind.holder,
            kind.has_ended,
        )
    names, told = list(kind.cycle), [name for name, _ in claim.cycle]
    turns = [names[first:] + names[:first] for first in range(len(names))]
    return told in turns and all(kind.cycle[name] in what for name, what in claim.cycle)


def _of_tasks(issue: Mapping[str, Any]) -> Claim | None:
    if issue["kind"] == "deadlock":
        return Claim(cycle=tuple((wait["task"], wait["waits_for"]) for wait in issue["cycle"]))
    if issue["kind"] == "lock-leak":
        return Claim(leaked=issue["primitive"], holder=issue["holder"], has_ended=issue["has_ended"])
    return None


def _of_threads(stall: Mapping[str, Any]) -> Claim | None:
    evidence, thread = stall["evidence"], stall["thread"]
    if _OWN in evidence:
        return Claim(cycle=((thread, f"the lock that {thread} holds"),))
    circles = [found[1] for text in evidence if (found := _THREADS.match(text))]
    if not circles:
        return None
    names = re.split(r", | and ", circles[0])
    waits = [(found[1], found[2]) for text in evidence if (found := _WAITS.fullmatch(text))]
    return Claim(cycle=tuple((name, what) for name, what in waits if name in names))
