"""What an exporter is given: stalls one after the other, and the programs that they were seen in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, LagIssue, Stall
from loopcanary.model.calls import TimedCall


class Program(NamedTuple):
    """Whose stalls they are."""

    name: str
    host: str = ""
    python: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What is to be exported. Stalls come by session, in it by thread, oldest first. They can be gone through
    once."""

    stalls: Iterator[Stall]
    issues: Iterator[LagIssue] = field(default_factory=lambda: iter(()))
    """Of other kinds, for formats that take them."""
    origin_wall_ns: int
    """No stall began before; formats whose times count from a start use it."""
    programs: Mapping[str, Program] = field(default_factory=dict)
    """By session."""
    each_call: Mapping[str, Sequence[TimedCall]] = field(default_factory=dict)
    """By stall: its traced calls one by one, where they are known; for formats that show time."""

    def program(self, issue: Issue) -> Program:
        return self.programs.get(issue.session) or Program(name=f"pid {issue.pid}")
