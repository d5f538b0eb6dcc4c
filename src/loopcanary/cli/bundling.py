"""What `bundle` and `upload` have in common: which records, and what is taken out of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopcanary.bundles import ALL, CLASSES
from loopcanary.cli.words import Word
from loopcanary.model.search import IssueQuery

if TYPE_CHECKING:
    from loopcanary.bundles import Contents, Redactor
    from loopcanary.cli.selecting import Choice
    from loopcanary.model import Session
    from loopcanary.protocols.stores import IssueStore

_KEY_NAME = "redaction.key"


class _Classes(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
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


def contents_of(source: IssueStore, choice: Choice) -> Contents:
    """What is chosen in the source. `choice`: in full."""
    from loopcanary.bundles import Contents

    return Contents(
        issues=choice.issues(source),
        session=lambda session_id: _session(source, session_id),
        remarks=source.remarks(),
    )


def _session(source: IssueStore, session_id: str) -> Session | None:
    found = source.sessions(IssueQuery(session=session_id))
    return next((session for session in found if session.id == session_id), None)


def made_by() -> str:
    """Which loopcanary this is."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"loopcanary {version('loopcanary')}"
    except PackageNotFoundError:
        return "loopcanary"
