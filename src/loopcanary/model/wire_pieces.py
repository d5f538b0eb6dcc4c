"""What issues of all kinds have in common, as JSON-able dicts and back; see model.wire."""

from __future__ import annotations

from loopcanary.model.stall import Culprit, StackFrame, WeightedStack
from loopcanary.model.waiting import Target, TargetKind
from loopcanary.model.wire_fields import Fields, Json, ms


def culprit_to_dict(culprit: Culprit) -> Json:
    """The culprit with the place of its call in the source line."""
    return {
        "function": culprit.function,
        "qualname": culprit.qualname,
        "file": culprit.file,
        "line": culprit.line,
        "source": culprit.source,
        "in_app": culprit.in_app,
        "column": culprit.column,
        "end_column": culprit.end_column,
    }


def culprit_of(fields: Fields) -> Culprit:
    """A culprit. Raises WireError."""
    return Culprit(
        function=fields.text("function"),
        qualname=fields.text("qualname", fields.text("function")),
        file=fields.text("file"),
        line=fields.integer("line"),
        source=fields.optional_text("source"),
        in_app=fields.flag("in_app"),
        column=fields.integer("column", 0),
        end_column=fields.integer("end_column", 0),
    )


def optional_culprit(culprit: Culprit | None) -> Json | None:
    """A culprit, or null."""
    return None if culprit is None else culprit_to_dict(culprit)


def frame_to_dict(frame: StackFrame) -> Json:
    """A frame."""
    return {
        "function": frame.function,
        "qualname": frame.qualname,
        "file": frame.file,
        "line": frame.line,
        "in_app": frame.in_app,
    }


def frame_of(fields: Fields) -> StackFrame:
    """A frame. Raises WireError."""
    return StackFrame(
        function=fields.text("function"),
        qualname=fields.text("qualname", fields.text("function")),
        file=fields.text("file"),
        line=fields.integer("line"),
        in_app=fields.flag("in_app"),
    )


def stack_to_dict(stack: WeightedStack) -> Json:
    """A stack, innermost frame first."""
    return {
        "weight_ms": ms(stack.weight_ns),
        "truncated": stack.truncated,
        "frames": [frame_to_dict(frame) for frame in stack.frames],
    }


def stack_of(fields: Fields) -> WeightedStack:
    """A stack. Raises WireError."""
    return WeightedStack(
        weight_ns=fields.ns("weight_ms"),
        frames=fields.many("frames", frame_of),
        truncated=fields.flag("truncated", False),
    )


def target_to_dict(target: Target) -> Json:
    """What a thread waited for."""
    return {"kind": target.kind.value, "name": target.name, "pid": target.pid}


def target_of(fields: Fields) -> Target:
    """What a thread waited for. Raises WireError."""
    return Target(
        kind=fields.choice("kind", TargetKind),
        name=fields.text("name", ""),
        pid=fields.optional_integer("pid"),
    )
