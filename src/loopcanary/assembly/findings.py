"""What makes two findings the same bug."""

from __future__ import annotations

import re

from loopcanary.diagnosis.fingerprint import plain_function
from loopcanary.model import ImportedFinding
from loopcanary.tracers.reported import function_identity

_SQL_MAX = 300
_VALUES = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")


def identity(issue: ImportedFinding) -> tuple[str, ...]:
    """The rule; and the statement without its values, the table, what leaked, the culprit's function, or the
    file's name, the first that there is."""
    at, culprit = issue.at, issue.culprit
    rule = f"rule={issue.rule.value}"
    if at.sql:
        return rule, f"statement={_VALUES.sub('?', ' '.join(at.sql.split()))[:_SQL_MAX]}"
    if at.table or at.owner:
        return rule, f"table={at.table}" if at.table else f"object={at.owner}"
    if culprit is not None:
        return rule, *function_identity(plain_function(culprit.qualname), culprit.file)
    return rule, f"file={at.file.rpartition('/')[2]}"
