"""Other people's formats: stalls as traces, profiles and tables that other tools open.

One file a format. Each writes stalls as they come from the store and keeps none, so that 100,000 of them need
no more memory than their different functions and threads do. docs/how-to/export.md shows each, and which
tool opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import IO, NamedTuple

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Issue, LagIssue, Stall
from loopcanary.model.calls import TimedCall
from loopcanary.registry import EXPORTERS, REGISTRY


class ExportError(Exception):
    """The message says what is missing or wrong, and what to do."""


class Program(NamedTuple):
    name: str
    host: str = ""
    python: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The stalls for an exporter: by session, in it by thread, oldest first, and readable once."""

    stalls: Iterator[Stall]
    issues: Iterator[LagIssue] = field(default_factory=lambda: iter(()))
    """Issues of other kinds, for formats that take them."""
    origin_wall_ns: int
    """No stall began before it; the times of some formats count from it."""
    programs: Mapping[str, Program] = field(default_factory=dict)
    each_call: Mapping[str, Sequence[TimedCall]] = field(default_factory=dict)
    """The traced calls of stalls one by one, by stall, if they are known."""

    def all(self) -> Iterator[Issue]:
        yield from self.stalls
        yield from self.issues

    def program(self, issue: Issue) -> Program:
        return self.programs.get(issue.session) or Program(name=f"pid {issue.pid}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    name: str
    write: Callable[[Exported, IO[bytes]], None]
    """Writes into an open binary file, which stays open. Raises OSError."""
    binary: bool = False
    """Not fit for a terminal."""
    takes_issues: bool = False
    """Whether it writes issues of every kind, not stalls alone."""


def names() -> list[str]:
    """The names of all registered formats; loads none of them."""
    return [one.name for one in REGISTRY.of(EXPORTERS)]


def find(name: str) -> Format | None:
    """The format of that name, or None. ExportError: it cannot be loaded, or a library that it needs is not
    installed."""
    one = REGISTRY.find(EXPORTERS, name)
    if one is None:
        return None
    cannot = f"the exporter {one.name} of {one.target} cannot be loaded"
    try:
        found = one.load()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0].replace("google", "protobuf")
        if not one.is_built_in or missing in ("", "loopcanary"):
            raise ExportError(f"{cannot}: {error}") from error
        raise ExportError(
            f'--format {one.name} needs {missing}, which is not installed: pip install "loopcanary[export]"'
        ) from error
    except Exception as error:
        raise ExportError(f"{cannot}: {error}") from error
    if not isinstance(found, Format):
        raise ExportError(f"the exporter {one.name} of {one.target} is not a loopcanary.exporters.Format")
    return found
