"""What `bundle` and `upload` have in common: which records, and what is taken out of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopcanary.bundles import ALL, CLASSES
from loopcanary.cli.words import Word
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.search import IssueQuery

if TYPE_CHECKING:
    from loopcanary.bundles import Contents, Redactor
    from loopcanary.cli.selecting import Choice
    from loopcanary.model import Issue, Session
    from loopcanary.store.reader import Reader

_KEY_NAME = "redaction.key"


class _Classes(click.ParamType[tuple[str, ...]]):
    """`paths,names` or `all`."""

    name = "classes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        asked = tuple(word.strip() for word in str(value).split(","))
        for word in asked:
            if word not in (*CLASSES, ALL):
                self.fail(f"{word!r} is none of {', '.join(CLASSES)} and {ALL}", param, ctx)
        return asked


_OPTIONS = (
    click.option(
        "--redact",
        type=_Classes(),
        default=(),
        metavar="WHAT,...",
        help=f"Replace {', '.join(CLASSES)}, or {ALL}; any of them removes sentences and source lines.",
    ),
    click.option(
        "--redact-key",
        type=Word(),
        metavar="FILE",
        help="Key of the replacements. Default: your own, made once.",
    ),
)


def redaction_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command what `redactor` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def redactor(redact: tuple[str, ...], redact_key: str | None) -> Redactor:
    """What replaces these classes. BundleError where there is no key."""
    from loopcanary.bundles import Redactor, load_key
    from loopcanary.store.location import user_folder

    if not redact:
        return Redactor((), b"")
    own = redact_key is None
    path = user_folder() / _KEY_NAME if redact_key is None else Path(redact_key)
    return Redactor(redact, load_key(path, make=own))


def contents_of(readers: Sequence[Reader], choice: Choice) -> Contents:
    """What is chosen in these stores, as of one; what is in several is taken from the first."""
    from loopcanary.bundles import Contents

    choice = choice.in_full(readers)
    remarks = {
        fingerprint: remark
        for reader in reversed(readers)
        for fingerprint, remark in reader.remarks().items()
    }
    return Contents(
        issues=_merged(_chosen(readers, choice.issues)),
        session=lambda session_id: _session(readers, session_id),
        remarks=remarks,
    )


def _chosen(
    readers: Sequence[Reader], choose: Callable[[Reader], Iterator[Issue]]
) -> Iterator[Iterator[Issue]]:
    """Of each store; a bug or stall that one names need not be in all of them."""
    missing: list[click.ClickException] = []
    for reader in readers:
        try:
            yield choose(reader)
        except click.ClickException as error:
            missing.append(error)
    if len(missing) == len(readers):
        raise missing[0]


def _merged(found: Iterable[Iterator[Issue]]) -> Iterator[Issue]:
    sources = list(found)  # what is wrong with the choice is said now
    return _once(heapq.merge(*sources, key=_order))


def _once(found: Iterator[Issue]) -> Iterator[Issue]:
    seen: set[str] = set()
    for one in found:
        if one.id not in seen:
            seen.add(one.id)
            yield one


def _order(issue: Issue) -> tuple[bool, str, str, str, int, str]:
    """As a choice gives them."""
    is_other = issue.kind != IssueKind.STALL
    return is_other, issue.session, issue.thread, issue.loop, issue.began_wall_ns, issue.id


def _session(readers: Sequence[Reader], session_id: str) -> Session | None:
    found = (one for reader in readers for one in reader.sessions(IssueQuery(session=session_id)))
    return next((session for session in found if session.id == session_id), None)


def made_by() -> str:
    """Which loopcanary this is."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"loopcanary {version('loopcanary')}"
    except PackageNotFoundError:
        return "loopcanary"
