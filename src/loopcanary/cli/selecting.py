"""The options by which commands choose stalls."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.param_types import MOMENT, WORD
from loopcanary.cli.refusals import NotFoundError
from loopcanary.late_dataclass import dataclass
from loopcanary.model.search import STALLS, IssueQuery
from loopcanary.model.stall import Cause
from loopcanary.ui.sources import as_one
from loopcanary.words.commands import reading
from loopcanary.words.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loopcanary.model import Issue, IssueKind
    from loopcanary.protocols.stores import IssueStore
    from loopcanary.store import Store

CANDIDATES_MAX = 5
"""Candidates that a message names."""
_ENOUGH = CANDIDATES_MAX + 1
"""One more, to know that there are more."""
_VERSIONS = ("6:", "5:", "4:", "3:", "2:", "1:")
"""The versions of fingerprints, the present one first (docs/internals/diagnosis.md). People leave them out.
"""

_OPTIONS = (
    click.option(
        "--since",
        type=MOMENT,
        help="Only what began at this time or later: 2h (ago), 2026-11-21, 2026-11-21T05:00.",
    ),
    click.option("--until", type=MOMENT, help="Only what began before this time."),
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
        type=WORD,
        metavar="TEXT",
        help="Only with this text in a name, path or source line; may be repeated.",
    ),
    click.option(
        "--run",
        "session",
        metavar="ID",
        type=WORD,
        help="Only this run; the first characters of its id are enough.",
    ),
)


def selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command since, until, causes, words and session."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def bug_option(text: str) -> Callable[[Any], Any]:
    return click.option("--bug", "group", metavar="FINGERPRINT", type=WORD, help=text)


_NARROWING = (
    bug_option("Only this bug; the first characters of its fingerprint are enough."),
    click.option(
        "--stall", metavar="ID", type=WORD, help="Only this stall; the first characters of its id are enough."
    ),
    click.option("--scene", metavar="SCENE", type=WORD, help="Only in this scene."),
    click.option("--loop", metavar="KIND", type=WORD, help="Only on loops of this kind, such as asyncio."),
    click.option("--thread", metavar="NAME", type=WORD, help="Only on the thread of this name."),
)


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_NARROWING):
        command = option(command)
    return selection_options(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The values of the selection's options, under their names."""

    since: int | None
    until: int | None
    causes: tuple[str, ...]
    words: tuple[str, ...]
    session: str | None
    group: str | None = None

    @property
    def query(self) -> IssueQuery:
        return IssueQuery(
            since_wall_ns=self.since,
            until_wall_ns=self.until,
            causes=frozenset(Cause(cause) for cause in self.causes),
            words=self.words,
            session=self.session,
            fingerprint=self.group,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Selection):
    """As Selection, of the options that choose single issues, too."""

    stall: str | None
    scene: str | None
    loop: str | None
    thread: str | None

    def in_full(self, stores: Sequence[Store]) -> Choice:
        """The same, with the full id and fingerprint of what the user named by its start. NotFoundError:
        there is none. ClickException: there are several."""
        stall, group = self.stall, self.group
        if stall is not None:
            source = as_one([store.reader for store in stores])
            stall = _only("stall", stall, ids_like(source, stall), stores)
        return replace(self, stall=stall, group=None if group is None else the_bug(stores, group))

    def issues(self, source: IssueStore) -> Iterator[Issue]:
        """The chosen issues of every kind, by session and thread, oldest first; stalls first."""
        found = self._found(source, self.query.stalls)
        return found if self.stall is not None else chain(found, self._found(source, self.query.others))

    def of_kind(self, source: IssueStore, kind: IssueKind) -> Iterator[Issue]:
        return self._found(source, replace(self.query, kind=kind))

    def _found(self, source: IssueStore, query: IssueQuery) -> Iterator[Issue]:
        if self.stall is None:
            return filter(self._is_meant, source.each(query))
        one = source.issue(self.stall)
        return filter(self._is_meant, () if one is None else (one,))

    def _is_meant(self, issue: Issue) -> bool:
        wanted = {"scene": self.scene, "loop": self.loop, "thread": self.thread}
        return all(value is None or getattr(issue, name) == value for name, value in wanted.items())


def ids_like(source: IssueStore, start: str, query: IssueQuery = STALLS) -> Sequence[str]:
    """Ids of issues that begin so; only one if it is a full id."""
    found = source.like("id", start, query, _ENOUGH)
    return [start] if start in found else found


def bugs_like(source: IssueStore, start: str) -> Sequence[str]:
    """Fingerprints that begin so, with or without their version; only one if it is full."""
    found: Sequence[str] = ()
    for full in [start] if ":" in start else [start, *(version + start for version in _VERSIONS)]:
        begin_so = source.like("fingerprint", full, IssueQuery(), _ENOUGH)
        if full in begin_so:
            return [full]
        found = found or begin_so
    return found


def the_bug(stores: Sequence[Store], start: str) -> str:
    """The fingerprint that begins so. NotFoundError: none does. ClickException: several do."""
    return _only("bug", start, bugs_like(as_one([store.reader for store in stores]), start), stores)


def _only(what: str, start: str, found: Sequence[str], stores: Sequence[Store]) -> str:
    if not found:
        names_them = f"`{reading('report', [store.folder for store in stores])}` shows them"
        raise NotFoundError(f"no {what} in the store begins with {printable(start, 60)}; {names_them}")
    if len(found) > 1:
        raise click.ClickException(ambiguity(start, found))
    return found[0]


def ambiguity(start: str, candidates: Sequence[str]) -> str:
    """The message for several; it needs one more than CANDIDATES_MAX at most."""
    named = ", ".join(printable(candidate, 60) for candidate in candidates[:CANDIDATES_MAX])
    more = " and more" if len(candidates) > CANDIDATES_MAX else ""
    return f"{printable(start, 60)} is ambiguous: {named}{more} begin so; write more of it"
