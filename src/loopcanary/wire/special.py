"""Forms that share values, or check them against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loopcanary.model import Activity, EarlierWork, ShortWork, Span, Stall, Timeline
from loopcanary.wire.form import Form, form_of, nested
from loopcanary.wire.values import MILLISECONDS, WHOLE, Codec, Misfit, many_of, read_at


class _TimelineForm(Form[Timeline]):
    """Writes each activity once; spans have its number."""

    def write(self, value: Timeline) -> dict[str, Any]:
        # By identity: spans share theirs, and to hash one is to hash a stack.
        shared = {id(span.activity): span.activity for span in value.spans}
        numbers = {known: number for number, known in enumerate(shared)}
        write_span, write_activity = form_of(Span).write, form_of(Activity).write
        return {
            "spans": [{**write_span(span), "activity": numbers[id(span.activity)]} for span in value.spans],
            "activities": [write_activity(activity) for activity in shared.values()],
            **super().write(value),
        }

    def attributes(self, document: Any) -> dict[str, Any]:
        found = super().attributes(document)
        activities = read_at(many_of(nested(Activity)), document, "activities", ())
        spans = many_of(Codec(lambda span: _span(span, activities)))
        return {**found, "spans": read_at(spans, document, "spans", ())}


def _span(document: Any, activities: tuple[Activity, ...]) -> Span:
    found = form_of(Span).attributes(document)
    number = read_at(WHOLE, document, "activity")
    if not 0 <= number < len(activities):
        raise Misfit(f"there is no activity {number}").below(".activity")
    return Span(**found, activity=activities[number])


class _EarlierForm(Form[EarlierWork]):
    """Writes the short work in between among the fields of the long work."""

    def write(self, value: EarlierWork) -> dict[str, Any]:
        short = {} if value.short is None else form_of(ShortWork).write(value.short)
        return {
            **super().write(value),
            "short_turns": short.get("turns", 0),
            "short_ms": short.get("busy_ms", 0.0),
            "short_callbacks": short.get("callbacks"),
            "idle_ms": short.get("idle_ms"),
        }

    def attributes(self, document: Any) -> dict[str, Any]:
        found = super().attributes(document)
        if document.get("short_callbacks") is not None:
            found["short"] = ShortWork(
                turns=read_at(WHOLE, document, "short_turns", 0),
                callbacks=read_at(WHOLE, document, "short_callbacks"),
                busy_ns=read_at(MILLISECONDS, document, "short_ms", 0.0),
                idle_ns=read_at(MILLISECONDS, document, "idle_ms", 0.0),
            )
        return found


class _StallForm(Form[Stall]):
    """Spans name stacks of their stall. An interceptor may have taken stacks out before it was stored."""

    def attributes(self, document: Any) -> dict[str, Any]:
        found = super().attributes(document)
        timeline, count = found["timeline"], len(found["stacks"])
        if timeline is not None:
            spans = tuple(_with_known_stack(span, count) for span in timeline.spans)
            found["timeline"] = replace(timeline, spans=spans)
        return found


def _with_known_stack(span: Span, count: int) -> Span:
    is_known = span.stack is None or 0 <= span.stack < count
    return span if is_known else replace(span, stack=None)


FORMS: dict[type, type[Form[Any]]] = {Timeline: _TimelineForm, EarlierWork: _EarlierForm, Stall: _StallForm}
