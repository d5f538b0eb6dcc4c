"""`loopcanary export`: stalls for other people's tools."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli import refuse
from loopcanary.cli.opening import NOTHING_FOUND, opened, store_option
from loopcanary.cli.output import STDOUT, opened_output, output_option
from loopcanary.cli.selecting import selection_options
from loopcanary.cli.words import Word
from loopcanary.exporters import FORMATS, Exported, ExportError, Format, Program, find
from loopcanary.model.search import StallQuery
from loopcanary.model.stall import Cause
from loopcanary.model.wording import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loopcanary.model import Stall
    from loopcanary.store import Store


class _FormatName(click.ParamType[Format]):
    """The name of a format, ours or a third party's."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Format:
        """The format."""
        found = value if isinstance(value, Format) else find(value)
        if found is None:
            self.fail(f"{value!r} is no format: use {', '.join(FORMATS)}", param, ctx)
        return found


@click.command(short_help="Write stalls in the formats of other tools.")
@store_option
@click.option(
    "--format",
    "form",
    type=_FormatName(),
    required=True,
    metavar="FORMAT",
    help=f"One of {', '.join(FORMATS)}.",
)
@output_option
@selection_options
@click.option("--group", metavar="FINGERPRINT", type=Word(), help="Only this bug; the start of it is enough.")
@click.option("--stall", metavar="ID", type=Word(), help="Only this stall; the start of its id is enough.")
@click.option("--scene", metavar="SCENE", type=Word(), help="Only where the user was in this scene.")
@click.option("--loop", metavar="KIND", type=Word(), help="Only on loops of this kind, such as asyncio.")
@click.option("--thread", metavar="NAME", type=Word(), help="Only on the thread of this name.")
def command(
    *,
    store: Path | None,
    form: Format,
    output: str,
    since: int | None,
    until: int | None,
    causes: tuple[str, ...],
    words: tuple[str, ...],
    session: str | None,
    group: str | None,
    stall: str | None,
    scene: str | None,
    loop: str | None,
    thread: str | None,
) -> int:
    """Write stalls in the formats of other tools.

    Traces (perfetto, chrome, firefox), profiles (speedscope, pprof, collapsed) and tables (csv, jsonl). All
    weights are time. docs/export.md has an example of each.
    """
    if output == STDOUT and form.binary and sys.stdout.isatty():
        return refuse(f"{form.name} is no text for a terminal: name a file with --output")
    write = form.writer()
    with opened(store) as source:
        if source is None:
            return NOTHING_FOUND
        query = StallQuery(
            since_wall_ns=since,
            until_wall_ns=until,
            causes=frozenset(Cause(cause) for cause in causes),
            words=words,
            session=session,
            fingerprint=None if group is None else _only("bug", group, source.fingerprints_like(group, 2)),
        )
        wanted = {"scene": scene, "loop": loop, "thread": thread}
        stalls = _chosen(source, query, wanted, stall)
        first = next(stalls, None)
        if first is None:
            return refuse("no stall matches, nothing was written") and NOTHING_FOUND
        with opened_output(output) as out:
            write(_exported(source, query, first, stalls), out)
    return 0


def _only(what: str, start: str, found: list[str]) -> str:
    if start in found:
        return start
    shown = printable(start, 60)
    if not found:
        raise ExportError(f"no {what} in the store begins with {shown}; `loopcanary report` names them")
    if len(found) > 1:
        raise ExportError(f"{shown} is the start of several; write more of it")
    return found[0]


def _chosen(
    source: Store, query: StallQuery, wanted: dict[str, str | None], stall_id: str | None
) -> Iterator[Stall]:
    asked = {name: value for name, value in wanted.items() if value is not None}
    if stall_id is None:
        found = source.each_stall(query)
    else:
        one = source.stall(_only("stall", stall_id, source.ids_like(stall_id, 2)))
        found = iter(() if one is None else (one,))
    return (one for one in found if all(getattr(one, name) == value for name, value in asked.items()))


def _exported(source: Store, query: StallQuery, first: Stall, rest: Iterator[Stall]) -> Exported:
    from itertools import chain

    earliest = source.first_wall_ns(query)
    marks = source.session_marks(StallQuery(session=query.session))
    return Exported(
        stalls=chain((first,), rest),
        origin_wall_ns=min(first.began_wall_ns, first.began_wall_ns if earliest is None else earliest),
        programs={mark.id: Program(name=mark.name) for mark in marks if mark.name},
    )
