"""Prints the JSON schemas of reports and of comparisons, made from the dataclasses of what they contain.

    .venv/bin/python tools/report_schema.py > src/loopcanary/report/report-schema-1.json
    .venv/bin/python tools/report_schema.py diff > src/loopcanary/report/diff/diff-schema-1.json

Types, units, null and enums are the codec's (`loopcanary.wire.parts`), descriptions the docstrings of
classes and fields. What reports add to values is written here. A test compares the files with what this
prints.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from enum import Enum
from itertools import pairwise
from types import NoneType
from typing import Any, get_args, get_origin

from loopcanary.built_in import BUILT_IN, KINDS
from loopcanary.model import (
    Activity,
    EarlierWork,
    IssueKind,
    LoopHealth,
    Session,
    ShortWork,
    Span,
    Stall,
    StartKind,
    Timeline,
)
from loopcanary.model.issues.facts import IssueFacts
from loopcanary.model.search import IssueGroup
from loopcanary.registry import load
from loopcanary.report.diff import json as diff_json
from loopcanary.report.diff.comparison import Change
from loopcanary.report.figures.loop_figures import LoopFigures
from loopcanary.report.figures.trend import Trend
from loopcanary.wire import SCHEMA_VERSION
from loopcanary.wire.parts import WirePart, parts_of, unit_of, wire_name

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
MILLISECONDS: Schema = {"$ref": "#/$defs/milliseconds"}
TIME: Schema = {"$ref": "#/$defs/time"}
TEXTS: Schema = {"type": "array", "items": TEXT}
SCALARS = {str: TEXT, int: WHOLE, float: NUMBER, bool: {"type": "boolean"}}
UNITS = {"_wall_ns": TIME, "_ns": MILLISECONDS, "_mhz": NUMBER}
WIDTH = 116
TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{9}Z$"
DESCRIPTION = (
    "Output of `loopcanary report --format json`. Fields are added within a schema number, never renamed or "
    "removed, so readers must ignore those that they do not know. docs/internals/report-schema.md says more."
)


def record(properties: Schema, *, optional: frozenset[str] = frozenset(), description: str = "") -> Schema:
    """An object with these fields; all but the optional ones are always there."""
    told = {"description": description} if description else {}
    required = [name for name in properties if name not in optional]
    return {"type": "object", **told, "properties": properties, "required": required}


def listed(items: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": items}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    if isinstance(schema.get("type"), str) and schema["type"] not in {"object", "array"}:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


class Definitions:
    """The definitions of classes, each made when it is first referred to."""

    def __init__(self) -> None:
        self.made: Schema = {
            "time": {"type": "string", "pattern": TIME_PATTERN, "description": "RFC 3339, UTC, nanoseconds."},
            "milliseconds": {"type": "number"},
        }

    def of(self, kind: type, added: Schema | None = None) -> Schema:
        """A reference to the definition of a class; `added`: fields that reports add."""
        name = snake(kind.__name__)
        if name not in self.made:
            self.made[name] = {}  # its place, before those it refers to
            properties = self.fields(kind) | (added or {})
            self.made[name] = record(properties, description=first_sentence(kind))
        return {"$ref": f"#/$defs/{name}"}

    def fields(self, kind: type) -> Schema:
        """The fields of a class."""
        told = field_docs(kind)
        found: Schema = {}
        for part in parts_of(kind):
            schema = self._part(kind, part)
            if part.spelling.apart:
                continue
            if part.spelling.flat:
                found |= self.fields(part.hint)
                continue
            text = told.get(part.attribute)
            described = {**schema, "description": text} if text else schema
            if part.spelling.inside:
                found.setdefault(part.spelling.inside, record({}))
                found[part.spelling.inside]["properties"][part.name] = described
                found[part.spelling.inside]["required"].append(part.name)
            else:
                found[part.name] = described
        return SHARED[kind](self, found) if kind in SHARED else found

    def _part(self, kind: type, part: WirePart) -> Schema:
        if part.field is None and isinstance(constant := getattr(kind, part.attribute, None), IssueKind):
            return {"const": constant.value}
        if part.spelling.keys:
            return record(dict.fromkeys(part.spelling.keys, WHOLE))
        if part.spelling.row:
            items = {wire_name(name): UNITS.get(unit_of(name), WHOLE) for name in part.spelling.row}
            return listed(record(items))
        return self.typed(part.hint, part.unit)

    def typed(self, hint: Any, unit: str) -> Schema:
        """The schema of a type."""
        origin, arguments = get_origin(hint), get_args(hint)
        if NoneType in arguments:
            (inner,) = (argument for argument in arguments if argument is not NoneType)
            return nullable(self.typed(inner, unit))
        if origin is tuple:
            return listed(self.typed(arguments[0], unit))
        if origin is dict:
            return {"type": "object", "additionalProperties": self.typed(arguments[1], "")}
        if unit:
            return UNITS[unit]
        if hint is IssueKind:
            return {"type": "string", "description": first_sentence(hint)}
        if hint in SCALARS:
            return SCALARS[hint]
        return self._enum(hint) if issubclass(hint, Enum) else self.of(hint)

    def _enum(self, kind: type[Enum]) -> Schema:
        name = snake(kind.__name__)
        self.made[name] = {"enum": [member.value for member in kind], "description": first_sentence(kind)}
        return {"$ref": f"#/$defs/{name}"}


def _timeline(definitions: Definitions, fields: Schema) -> Schema:
    spans = definitions.of(Span, {"activity": WHOLE})
    return {"spans": listed(spans), "activities": listed(definitions.of(Activity)), **fields}


def _earlier(definitions: Definitions, fields: Schema) -> Schema:
    short = definitions.fields(ShortWork)
    return {
        **fields,
        "short_turns": short["turns"],
        "short_ms": MILLISECONDS,
        "short_callbacks": nullable(WHOLE),
        "idle_ms": nullable(MILLISECONDS),
    }


SHARED = {Timeline: _timeline, EarlierWork: _earlier}
"""Fields of the forms of `loopcanary.wire.special`."""


def snake(name: str) -> str:
    """`StackFrame` -> `stack_frame`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def first_sentence(kind: type) -> str:
    """The first paragraph of a class's docstring."""
    return in_json((inspect.getdoc(kind) or "").partition("\n\n")[0])


def in_json(text: str) -> str:
    """A docstring on one line, with the names that fields have in JSON."""
    return re.sub(r"\b[a-z_]+_ns\b", lambda name: wire_name(name[0]), " ".join(text.split()))


def field_docs(kind: type) -> dict[str, str]:
    """The strings that stand behind the fields of a class and of those it is made from."""
    told: dict[str, str] = {}
    for owner in reversed(kind.__mro__[:-1]):
        (tree,) = ast.parse(inspect.cleandoc(inspect.getsource(owner))).body
        body = getattr(tree, "body", [])
        for pair in pairwise(body):
            match pair:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str() as said)),
                ):
                    told[name] = in_json(said)
    return told


# ---- what reports add ------------------------------------------------------------------------


def group_fields(definitions: Definitions) -> Schema:
    """What reports add to a group of stalls."""
    gain = record(
        {
            "program": TEXT,
            "thread": TEXT,
            "loop": TEXT,
            "p99_ms": MILLISECONDS,
            "p99_without_ms": MILLISECONDS,
        }
    )
    counted = listed(record({"name": TEXT, "stalls": WHOLE}))
    names = ("scenes", "tasks", "callbacks", "threads", "causes")
    return {
        "stall_ids": TEXTS,
        "trend": nullable(definitions.of(Trend)),
        "gains": listed(gain),
        "others_waited_s": nullable(NUMBER),
        "grouped_by": TEXTS,
        "affected": record({"examined": WHOLE, "startup": WHOLE, **dict.fromkeys(names, counted)}),
    }


ADDED_TO_ISSUES = {
    "detected_at": {**TIME, "description": "When it was found: a deadlock while it goes on, for example."},
    "ended_at": {
        **nullable(TIME),
        "description": "When it was over, at the latest: that of what was found while it went on is its "
        "process's end. null: the process runs, or is not known.",
    },
    "evidence": TEXTS,
}


def _issue_types() -> list[type]:
    return [load(kind).issue_class for name, kind in BUILT_IN[KINDS].items() if name != "stall"]


def other_issue(definitions: Definitions) -> Schema:
    """An issue of a plugin's kind: it has what all kinds have, and no name of ours."""
    kind = {**TEXT, "not": {"enum": [*BUILT_IN[KINDS]]}}
    fields = definitions.fields(IssueFacts) | {**ADDED_TO_ISSUES, "kind": kind}
    return record(fields, description="An issue of a plugin's kind, which may have more fields.")


def document() -> Schema:
    """The schema of a report."""
    definitions = Definitions()
    loop_figures = definitions.fields(LoopFigures)
    definitions.of(LoopHealth, loop_figures)
    issues = [definitions.of(kind, ADDED_TO_ISSUES) for kind in _issue_types()]
    definitions.made["other_issue"] = other_issue(definitions)
    groups = definitions.fields(IssueGroup)
    shown_alone = frozenset({"grouped_by", "affected"})
    issue_group = {**groups, "issue_ids": TEXTS, "grouped_by": TEXTS}
    totals = {"stalls": WHOLE, "groups": WHOLE, "total_ms": MILLISECONDS, "watched_ms": MILLISECONDS}
    properties = {
        "schema": {"const": SCHEMA_VERSION},
        "generated_at": TIME,
        "totals": record(totals),
        "sessions": listed(definitions.of(Session)),
        "groups": listed(record(groups | group_fields(definitions), optional=shown_alone)),
        "stalls": listed(definitions.of(Stall)),
        "issues": listed({"anyOf": [*issues, _defined("other_issue")]}),
        "issue_groups": listed(record(issue_group, optional=shown_alone)),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"loopcanary report, schema {SCHEMA_VERSION}",
        **record(properties, description=DESCRIPTION),
        "$defs": definitions.made,
    }


# ---- comparisons -----------------------------------------------------------------------------

DIFF_DESCRIPTION = (
    "Output of `loopcanary diff --format json`. Fields are added within a schema number, never renamed or "
    "removed. docs/how-to/comparing.md says what each means."
)


def diff_document() -> Schema:
    """The schema of a comparison. Its groups have four fields of a report's."""
    definitions = Definitions()
    groups = definitions.fields(IssueGroup)
    bounds: Schema = {"low": NUMBER, "high": nullable(NUMBER)}
    per_hour = {"watched_hours": NUMBER, "count": WHOLE, "stalls_per_hour": NUMBER, "stalled_s": NUMBER}
    side = {"label": TEXT, "sessions": WHOLE, "watched_hours": NUMBER, "stalls": WHOLE, "stalled_s": NUMBER}
    defined = {
        **{name: definitions.made[name] for name in ("time", "cause", "culprit")},
        "side": record({**side, "callbacks_per_s": nullable(NUMBER)}),
        "range": record(bounds),
        "seen": record({**per_hour, "stalled_s_per_hour": record({"value": NUMBER, **bounds})}),
        "group": record(
            {
                **{name: groups[name] for name in ("fingerprint", "title", "cause", "culprit")},
                "change": {"enum": [change.value for change in Change]},
                "sure": SCALARS[bool],
                "before": _defined("seen"),
                "after": _defined("seen"),
                "ratio": _defined("range"),
            }
        ),
        "times": record({"count": WHOLE, **dict.fromkeys(("median_ms", "min_ms", "max_ms"), NUMBER)}),
        "start": record(
            {
                "program": TEXT,
                "start": {"enum": [kind.value for kind in StartKind]},
                "sure": SCALARS[bool],
                "before": _defined("times"),
                "after": _defined("times"),
                "imports": listed(record({"name": TEXT, "before_ms": NUMBER, "after_ms": NUMBER})),
            }
        ),
    }
    properties = {
        "schema": {"const": diff_json.SCHEMA_VERSION},
        "generated_at": TIME,
        "level": NUMBER,
        "before": _defined("side"),
        "after": _defined("side"),
        "counts": record({change.value: WHOLE for change in Change}),
        "groups": listed(_defined("group")),
        "starts": listed(_defined("start")),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"loopcanary diff, schema {diff_json.SCHEMA_VERSION}",
        **record(properties, description=DIFF_DESCRIPTION),
        "$defs": defined,
    }


def _defined(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def printed(value: Any, indent: str = "") -> str:
    """JSON with everything that fits on one line."""
    flat = json.dumps(value)
    if len(indent + flat) <= WIDTH or not isinstance(value, dict | list):
        return flat
    deeper = indent + " "
    names = [f"{json.dumps(name)}: " for name in value] if isinstance(value, dict) else [""] * len(value)
    items = value.values() if isinstance(value, dict) else value
    lines = [f"{deeper}{name}{printed(item, deeper)}" for name, item in zip(names, items, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return "\n".join((opening, ",\n".join(lines), f"{indent}{closing}"))


if __name__ == "__main__":
    sys.stdout.write(printed(diff_document() if sys.argv[1:] == ["diff"] else document()) + "\n")
