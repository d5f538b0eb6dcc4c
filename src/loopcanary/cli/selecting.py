"""The options by which commands choose stalls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.times import Moment
from loopcanary.cli.words import Renamed, Word
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.model.stall import Cause, Stall
from loopcanary.words.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from loopcanary.model import Issue, IssueKind
    from loopcanary.store.reader import Reader

CANDIDATES_MAX = 5
"""Named where the start of an id is that of several."""
_ENOUGH = CANDIDATES_MAX + 1
"""To know that there are more."""

_OPTIONS = (
    click.option(
        "--since",
        type=Moment(),
        help="Only what began then or later: 2h (ago), 2026-11-21, 2026-11-21T05:00.",
    ),
    click.option("--until", type=Moment(), help="Only what began before then."),
    click.option(
        "--cause",
        "causes",
        multiple=True,
        type=click.Choice([cause.value for cause in Cause]),
        metavar="CAUSE",
        help="Only this cause, such as lock or native-cpu; may be repeated.",
    ),
    click.option(
        "--text",
        "words",
        multiple=True,
        type=Word(),
        metavar="TEXT",
        help="Only with this in a name, path or source line; may be repeated.",
    ),
    click.option(
        "--run",
        "--session",
        "session",
        cls=Renamed,
        metavar="ID",
        type=Word(),
        help="Only this run; the start of its id is enough.",
    ),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command since, until, causes, words and session."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_NARROWING = (
    click.option(
        "--bug",
        "--group",
        "group",
        cls=Renamed,
        metavar="FINGERPRINT",
        type=Word(),
        help="Only this bug; the start of its fingerprint is enough.",
    ),
    click.option(
        "--stall", metavar="ID", type=Word(), help="Only this stall; the start of its id is enough."
    ),
    click.option("--scene", metavar="SCENE", type=Word(), help="Only in this scene."),
    click.option("--loop", metavar="KIND", type=Word(), help="Only on loops of this kind, such as asyncio."),
    click.option("--thread", metavar="NAME", type=Word(), help="Only on the thread of this name."),
)


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command all options by which stalls are chosen for another place; `Choice` takes them."""
    for option in reversed(_NARROWING):
        command = option(command)
    return selection_options(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was asked for by these options, under their names."""

    since: int | None
    until: int | None
    causes: tuple[str, ...]
    words: tuple[str, ...]
    session: str | None
    group: str | None
    stall: str | None
    scene: str | None
    loop: str | None
    thread: str | None

    def in_full(self, sources: Sequence[Reader]) -> Choice:
        """The same, with the one stall and the one bug in full whose starts were given. ClickException where
        none of these stores has it, or they have several together."""
        stall, group = self.stall, self.group
        if stall is not None:
            stall = _only(
                "stall", stall, _sorted(source.like("id", stall, STALLS, _ENOUGH) for source in sources)
            )
        if group is not None:
            group = _only(
                "bug",
                group,
                _sorted(source.like("fingerprint", group, IssueQuery(), _ENOUGH) for source in sources),
            )
        return replace(self, stall=stall, group=group)

    def query(self, source: Reader) -> IssueQuery:
        """The question to this store. ClickException where it has no such bug, or several."""
        return IssueQuery(
            since_wall_ns=self.since,
            until_wall_ns=self.until,
            causes=frozenset(Cause(cause) for cause in self.causes),
            words=self.words,
            session=self.session,
            fingerprint=None
            if self.group is None
            else _only("bug", self.group, source.like("fingerprint", self.group, IssueQuery(), _ENOUGH)),
        )

    def stalls(self, source: Reader) -> Iterator[Stall]:
        """The stalls that are meant, by session and thread, oldest first. ClickException as for `query`."""
        found = self._found(source, self.query(source).stalls)
        return (one for one in found if isinstance(one, Stall))

    def issues(self, source: Reader) -> Iterator[Issue]:
        """The issues of every kind that are meant, as `stalls`; stalls first."""
        query = self.query(source)
        found = self._found(source, query.stalls)
        return found if self.stall is not None else chain(found, self._found(source, query.others))

    def of_kind(self, source: Reader, kind: IssueKind) -> Iterator[Issue]:
        """The issues of one kind that are meant, as `stalls`."""
        return self._found(source, replace(self.query(source), kind=kind))

    def _found(self, source: Reader, query: IssueQuery) -> Iterator[Issue]:
        if self.stall is None:
            return filter(self._is_meant, source.each(query))
        one = source.issue(_only("stall", self.stall, source.like("id", self.stall, STALLS, _ENOUGH)))
        return filter(self._is_meant, () if one is None else (one,))

    def _is_meant(self, issue: Issue) -> bool:
        wanted = {"scene": self.scene, "loop": self.loop, "thread": self.thread}
        return all(value is None or getattr(issue, name) == value for name, value in wanted.items())


def _sorted(found: Iterable[Iterable[str]]) -> list[str]:
    return sorted({name for names in found for name in names})


def _only(what: str, start: str, found: list[str]) -> str:
    if start in found:
        return start
    shown = printable(start, 60)
    if not found:
        raise click.ClickException(
            f"no {what} in the store begins with {shown}; `loopcanary report` names them"
        )
    if len(found) > 1:
        raise click.ClickException(ambiguity(start, found))
    return found[0]


def ambiguity(start: str, candidates: list[str]) -> str:
    """What is said where several begin so; one more than CANDIDATES_MAX of them are enough."""
    named = ", ".join(printable(candidate, 60) for candidate in candidates[:CANDIDATES_MAX])
    more = " and more" if len(candidates) > CANDIDATES_MAX else ""
    return f"{printable(start, 60)} is the start of several: {named}{more}; write more of it"
