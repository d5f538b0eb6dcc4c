"""`loopcanary export`: stalls for other people's tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import click

from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import STDOUT, opened_output, output_option
from loopcanary.cli.param_types import Parsed
from loopcanary.cli.refusals import NotFoundError, refuse
from loopcanary.cli.selecting import Choice, choice_options
from loopcanary.exporters import Exported, Format, Program, find, names
from loopcanary.model import Issue, IssueKind, Stall
from loopcanary.model.search import IssueQuery
from loopcanary.protocols.stores import IssueStore
from loopcanary.registry import KINDS, REGISTRY
from loopcanary.ui.sources import as_one


def _format(name: str) -> Format:
    found = find(name)
    if found is None:
        raise ValueError(f"{name!r} is not a format: use {', '.join(names())}")
    return found


@click.command(short_help="Write stalls in the formats of other tools.")
@reads_stores
@click.option(
    "--format",
    "form",
    type=Parsed("format", _format),
    required=True,
    metavar="FORMAT",
    help=f"One of {', '.join(names())}.",
)
@output_option
@click.option("--kind", metavar="KIND", default="stall", help="Default: stall. jsonl takes all kinds.")
@choice_options
def command(*, stores: tuple[Path, ...], form: Format, output: str, kind: str, **asked: Any) -> int:
    """Write stalls in the formats of other tools.

    Traces (perfetto, chrome, firefox), profiles (speedscope, pprof, collapsed) and tables (csv, jsonl,
    matrix). All weights are stalled time. docs/how-to/export.md has an example of each.
    """
    if output == STDOUT and form.binary and sys.stdout.isatty():
        return refuse(f"{form.name} is binary, and a terminal cannot show it: name a file with --output")
    if kind != "stall" and (REGISTRY.find(KINDS, kind) is None or not form.takes_issues):
        return refuse(f"{form.name} cannot hold issues of kind {kind}: use jsonl")
    with opened(stores) as opened_stores:
        source = as_one([store.reader for store in opened_stores])
        choice = Choice(**asked).in_full(opened_stores)
        found = choice.of_kind(source, IssueKind(kind))
        first = next(found, None)
        if first is None:
            raise NotFoundError(f"no {kind} matches, nothing was written")
        with opened_output(output) as out:
            form.write(_exported(source, choice.query, chain((first,), found)), out)
    return 0


def _exported(source: IssueStore, query: IssueQuery, found: Iterator[Issue]) -> Exported:
    first = next(found)
    earliest = source.totals(query.stalls).first_wall_ns
    marks = source.session_marks(IssueQuery(session=query.session))
    found = chain((first,), found)
    is_stall = isinstance(first, Stall)
    return Exported(
        stalls=(one for one in found if isinstance(one, Stall)) if is_stall else iter(()),
        issues=iter(()) if is_stall else (one for one in found if not isinstance(one, Stall)),
        origin_wall_ns=min(first.began_wall_ns, first.began_wall_ns if earliest is None else earliest),
        programs={mark.id: Program(name=mark.name) for mark in marks if mark.name},
    )
