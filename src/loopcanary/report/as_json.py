"""The report as JSON: contract 7.3 of the design, docs/internals/report-schema.md, report-schema-1.json."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from loopcanary.model import Issue, Session
from loopcanary.model.search import IssueGroup
from loopcanary.protocols.kinds import kind_of
from loopcanary.report.figures.loop_figures import figures_of
from loopcanary.report.issue import over_at, session_of
from loopcanary.report.model import Details, Figures, Report
from loopcanary.wire import SCHEMA_VERSION, Json, time_to_text, to_wire


def report_to_dict(report: Report) -> Json:
    ids = defaultdict(list)
    for stall in report.stalls:
        ids[stall.fingerprint].append(stall.id)
    return {
        "schema": SCHEMA_VERSION,
        "generated_at": time_to_text(report.generated_wall_ns),
        "totals": {
            "stalls": report.sums.issues,
            "groups": report.sums.groups,
            "total_ms": report.sums.total_ns / 1_000_000,
            "watched_ms": report.watched.total_ns / 1_000_000,
        },
        "sessions": [_session_to_dict(session) for session in report.sessions],
        "groups": [
            {
                **to_wire(group),
                "stall_ids": ids[group.fingerprint],
                **_figures_to_dict(report.figures.get(group.fingerprint)),
                **_details_to_dict(report.details),
            }
            for group in report.groups
        ],
        "stalls": [to_wire(stall) for stall in report.stalls],
        "issues": [_issue_to_dict(issue, session_of(report, issue)) for issue in report.issues],
        "issue_groups": [_issue_group_to_dict(group, report) for group in report.issue_groups],
    }


def render(report: Report) -> str:
    """The report as ASCII text, one line an entry; no name in it can trouble a terminal, a log or a page."""
    return render_members(report_to_dict(report))


def render_members(document: Json) -> str:
    """A document as ASCII text; each list in it one line an entry."""
    return "{\n" + ",\n".join(_members(document)) + "\n}\n"


def _members(report: Json) -> Iterator[str]:
    for key, value in report.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(_encoded(entry) for entry in value)
            yield f"{_encoded(key)}: [\n{entries}\n]"
        else:
            yield f"{_encoded(key)}: {_encoded(value)}"


def _encoded(value: object) -> str:
    # No indent: with one, json leaves its C encoder and takes ten times as long.
    text = json.dumps(value, allow_nan=False)
    # `<` is escaped, since reports are embedded in pages, where `</script>` would end the data.
    return text.replace("<", "\\u003c").replace("\x7f", "\\u007f")


def _issue_to_dict(issue: Issue, session: Session | None) -> Json:
    over_wall_ns = over_at(issue, session)
    return {
        **to_wire(issue),
        "detected_at": time_to_text(issue.began_wall_ns + issue.duration_ns),
        "ended_at": None if over_wall_ns is None else time_to_text(over_wall_ns),
        "evidence": list(kind_of(issue).all_evidence(issue)),
    }


def _issue_group_to_dict(group: IssueGroup, report: Report) -> Json:
    return {
        **to_wire(group),
        "issue_ids": [issue.id for issue in report.issues if issue.fingerprint == group.fingerprint],
        **({} if report.details is None else {"grouped_by": list(report.details.parts)}),
    }


def _session_to_dict(session: Session) -> Json:
    document = to_wire(session)
    for loop, fields in zip(session.loops, document["loops"], strict=True):
        fields.update(to_wire(figures_of(loop)))
    return document


def _figures_to_dict(figures: Figures | None) -> Json:
    if figures is None:
        return {"trend": None, "gains": [], "others_waited_s": None}
    waiting_ns = figures.gains.waiting_ns
    return {
        "trend": to_wire(figures.trend),
        "gains": [
            {
                "program": gain.loop.program,
                "thread": gain.loop.thread,
                "loop": gain.loop.kind,
                "p99_ms": gain.p99_ns / 1_000_000,
                "p99_without_ms": gain.p99_without_ns / 1_000_000,
            }
            for gain in figures.gains.loops
        ],
        "others_waited_s": None if waiting_ns is None else waiting_ns / 1_000_000_000,
    }


def _details_to_dict(details: Details | None) -> Json:
    affected = None if details is None else details.affected
    if details is None or affected is None:
        return {}
    return {
        "grouped_by": list(details.parts),
        "affected": {
            "examined": affected.examined,
            "startup": affected.startup,
            **{
                name: [{"name": named, "stalls": count} for named, count in getattr(affected, name)]
                for name in ("scenes", "tasks", "callbacks", "threads", "causes")
            },
        },
    }
