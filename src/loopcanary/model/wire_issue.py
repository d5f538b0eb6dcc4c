"""Issues that are no stalls as JSON-able dicts and back; see model.wire."""

from __future__ import annotations

from typing import Any

from loopcanary.model.issues.issue import LagIssue
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.issues.lags import Handled, IdleLag, InputLag, Jank, LateFrame
from loopcanary.model.issues.slow_method import SlowMethod
from loopcanary.model.issues.startup import Startup
from loopcanary.model.stall import Cause
from loopcanary.model.wire_fields import Fields, Json, WireError, ms, time_to_text
from loopcanary.model.wire_pieces import culprit_of, optional_culprit, stack_of, stack_to_dict
from loopcanary.model.wire_traced import slow_method_of, slow_method_to_dict, startup_of, startup_to_dict
from loopcanary.model.wire_traces import figures_of, figures_to_dict


def issue_to_dict(issue: LagIssue) -> Json:
    """The issue; which fields it has beside the common ones depends on its `kind`."""
    return {
        "id": issue.id,
        "kind": issue.kind.value,
        "fingerprint": issue.fingerprint,
        "session": issue.session,
        "pid": issue.pid,
        "thread": issue.thread,
        "loop": issue.loop,
        "title": issue.title,
        "scene": issue.scene,
        "began_at": time_to_text(issue.began_wall_ns),
        "duration_ms": ms(issue.duration_ns),
        "cause": issue.cause.value,
        "culprit": optional_culprit(issue.culprit),
        "advice": issue.advice,
        "stall_ids": list(issue.stalls),
        "stacks": [stack_to_dict(stack) for stack in issue.stacks],
        **_own_to_dict(issue),
    }


def _own_to_dict(issue: LagIssue) -> Json:
    match issue:
        case Jank():
            return {
                "frames": figures_to_dict(issue.figures),
                "worst": [_late_to_dict(frame) for frame in issue.worst],
            }
        case InputLag():
            return {
                "event": issue.event,
                "queued_ms": ms(issue.queued_ns),
                "before": [_handled_to_dict(handled) for handled in issue.before],
            }
        case IdleLag():
            return {"handler": issue.handler, "runs": issue.runs}
        case Startup():
            return startup_to_dict(issue)
        case SlowMethod():
            return slow_method_to_dict(issue)


def issue_from_dict(value: object) -> LagIssue:
    """The issue that `issue_to_dict` wrote. Raises WireError."""
    fields = Fields(value, "issue")
    kind = fields.choice("kind", IssueKind)
    common: dict[str, Any] = {
        "id": fields.text("id"),
        "fingerprint": fields.text("fingerprint"),
        "session": fields.text("session"),
        "pid": fields.integer("pid"),
        "thread": fields.text("thread"),
        "loop": fields.text("loop"),
        "title": fields.text("title"),
        "scene": fields.optional_text("scene"),
        "began_wall_ns": fields.time("began_at"),
        "duration_ns": fields.ns("duration_ms"),
        "cause": fields.choice("cause", Cause, Cause.UNKNOWN.value),
        "culprit": fields.optional("culprit", culprit_of),
        "advice": fields.optional_text("advice"),
        "stalls": fields.texts("stall_ids"),
        "stacks": fields.many("stacks", stack_of),
    }
    match kind:
        case IssueKind.JANK:
            return Jank(figures=fields.one("frames", figures_of), worst=fields.many("worst", _late), **common)
        case IssueKind.INPUT:
            return InputLag(
                event=fields.text("event"),
                queued_ns=fields.ns("queued_ms", 0.0),
                before=fields.many("before", _handled),
                **common,
            )
        case IssueKind.IDLE:
            return IdleLag(handler=fields.text("handler"), runs=fields.integer("runs", 1), **common)
        case IssueKind.STARTUP:
            return startup_of(fields, common)
        case IssueKind.SLOW_METHOD:
            return slow_method_of(fields, common)
        case _:
            raise WireError(f"issue.kind: a {kind.value} is written in another way")


def _late_to_dict(frame: LateFrame) -> Json:
    return {
        "began_at": time_to_text(frame.began_wall_ns),
        "duration_ms": ms(frame.duration_ns),
        "dropped": frame.dropped,
        "stall_ids": list(frame.stalls),
    }


def _late(fields: Fields) -> LateFrame:
    return LateFrame(
        began_wall_ns=fields.time("began_at"),
        duration_ns=fields.ns("duration_ms"),
        dropped=fields.integer("dropped"),
        stalls=fields.texts("stall_ids"),
    )


def _handled_to_dict(handled: Handled) -> Json:
    return {
        "name": handled.name,
        "duration_ms": ms(handled.duration_ns),
        "culprit": optional_culprit(handled.culprit),
        "stall_id": handled.stall,
    }


def _handled(fields: Fields) -> Handled:
    return Handled(
        name=fields.text("name"),
        duration_ns=fields.ns("duration_ms"),
        culprit=fields.optional("culprit", culprit_of),
        stall=fields.optional_text("stall_id"),
    )
