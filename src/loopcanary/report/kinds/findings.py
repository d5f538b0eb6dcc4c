"""Findings of other monitors: what is wrong, where, with which figures."""

from __future__ import annotations

from loopcanary.document.makers import facts, name, part, said, sentences
from loopcanary.document.parts import Block, Facts, Items
from loopcanary.document.verdict import where
from loopcanary.model import ImportedFinding
from loopcanary.model.units import format_size
from loopcanary.words.findings import of_finding
from loopcanary.words.text import printable

_SQL_MAX = 2_000
_CHAIN_MAX = 100


def why(issue: ImportedFinding) -> tuple[Block, ...]:
    """The line to change, where it is known, and the figures. A finding has no cause: the rule says all."""
    place = where(issue.culprit, issue.cause) if issue.culprit is not None else ()
    return (*place, Items(tuple(said(words) for words in of_finding(issue))))


def figures(issue: ImportedFinding) -> Facts:
    """What it is in."""
    at = issue.at
    size = f", {format_size(issue.size_bytes)}" if issue.size_bytes and at.file else ""
    return facts(
        ("rule", issue.rule.value),
        ("file", said(name(at.file, 200), size) if at.file else None),
        ("database", name(at.database, 200)),
        ("table", name(at.table, 120)),
        ("object", name(at.owner, 200)),
    )


def parts(issue: ImportedFinding) -> tuple[Block, ...]:
    """The statement, and what holds the object."""
    held = Items(tuple(said(printable(one, 300)) for one in issue.at.chain[:_CHAIN_MAX]))
    return (
        *part("statement", [sentences(printable(issue.at.sql, _SQL_MAX))] if issue.at.sql else []),
        *part("held by, from the root on", [held] if issue.at.chain else []),
    )
