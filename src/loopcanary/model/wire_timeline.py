"""A stall's timeline as a JSON-able dict and back; see model.wire.

Spans name what the thread did by its number in a list: a stall of 200 spans mostly knows three activities.
"""

from __future__ import annotations

from loopcanary.model.earlier import EarlierWork, ShortWork, WorkKind
from loopcanary.model.timeline import Activity, Doing, Pause, Span, Timeline
from loopcanary.model.waiting import GilState
from loopcanary.model.wire_fields import Fields, Json, WireError, ms, optional_ms
from loopcanary.model.wire_pieces import frame_of, frame_to_dict, target_of, target_to_dict


def timeline_to_dict(timeline: Timeline) -> Json:
    """The timeline; each activity once."""
    # By identity: spans share theirs, and to hash one is to hash a stack.
    activities = {id(span.activity): span.activity for span in timeline.spans}
    numbers = {known: number for number, known in enumerate(activities)}
    spans = [_span_to_dict(span, numbers[id(span.activity)]) for span in timeline.spans]
    return {
        "spans": spans,
        "activities": [_activity_to_dict(activity) for activity in activities.values()],
        "pauses": [_pause_to_dict(pause) for pause in timeline.pauses],
        "earlier": [_work_to_dict(work) for work in timeline.earlier],
        "earlier_last": None if timeline.earlier_last is None else _short_to_dict(timeline.earlier_last),
        "threads_at_ms": optional_ms(timeline.threads_at_ns),
        "turn_ago_ms": optional_ms(timeline.turn_ago_ns),
        "turn_callbacks": timeline.turn_callbacks,
        "earlier_from_ms": optional_ms(timeline.earlier_from_ns),
        "seen_from_ms": ms(timeline.seen_from_ns),
        "seen_until_ms": ms(timeline.seen_until_ns),
        "thinned": timeline.thinned,
    }


def timeline_of(fields: Fields, stacks: int) -> Timeline:
    """A timeline of a stall that has so many stacks. Raises WireError."""
    activities = fields.many("activities", _activity)
    spans = fields.many("spans", lambda span: _span(span, activities, stacks))
    return Timeline(
        spans=spans,
        seen_from_ns=fields.ns("seen_from_ms", 0.0),
        seen_until_ns=fields.ns("seen_until_ms", 0.0),
        pauses=fields.many("pauses", _pause),
        thinned=fields.flag("thinned", False),
        earlier=fields.many("earlier", _work),
        earlier_last=fields.optional("earlier_last", _short),
        threads_at_ns=fields.optional_ns("threads_at_ms"),
        turn_ago_ns=fields.optional_ns("turn_ago_ms"),
        turn_callbacks=fields.integer("turn_callbacks", 0),
        earlier_from_ns=fields.optional_ns("earlier_from_ms"),
    )


def _span_to_dict(span: Span, activity: int) -> Json:
    return {
        "offset_ms": ms(span.offset_ns),
        "length_ms": ms(span.length_ns),
        "samples": span.samples,
        "stack": span.stack,
        "activity": activity,
    }


def _span(fields: Fields, activities: tuple[Activity, ...], stacks: int) -> Span:
    stack, activity = fields.optional_integer("stack"), fields.integer("activity")
    if not 0 <= activity < len(activities):
        raise WireError(f"timeline.spans: there is no activity {activity}")
    if stack is not None and not 0 <= stack < stacks:
        stack = None  # who was asked about the stall before it was stored may have taken stacks out
    return Span(
        offset_ns=fields.ns("offset_ms"),
        length_ns=fields.ns("length_ms"),
        samples=fields.integer("samples", 1),
        stack=stack,
        activity=activities[activity],
    )


def _activity_to_dict(activity: Activity) -> Json:
    return {
        "doing": activity.doing.value,
        "state": activity.state,
        "syscall": activity.syscall,
        "waited_on": None if activity.waited_on is None else target_to_dict(activity.waited_on),
        "lock": activity.lock,
        "gil": activity.gil.value,
        "holder": activity.holder,
        "holder_frames": [frame_to_dict(frame) for frame in activity.holder_frames],
    }


def _activity(fields: Fields) -> Activity:
    return Activity(
        doing=fields.choice("doing", Doing),
        state=fields.text("state", ""),
        syscall=fields.optional_text("syscall"),
        waited_on=fields.optional("waited_on", target_of),
        lock=fields.optional_text("lock"),
        gil=fields.choice("gil", GilState, GilState.UNKNOWN.value),
        holder=fields.optional_text("holder"),
        holder_frames=fields.many("holder_frames", frame_of),
    )


def _pause_to_dict(pause: Pause) -> Json:
    return {
        "offset_ms": ms(pause.offset_ns),
        "length_ms": ms(pause.length_ns),
        "generation": pause.generation,
        "collected": pause.collected,
        "thread": pause.thread,
        "own": pause.own,
    }


def _pause(fields: Fields) -> Pause:
    return Pause(
        offset_ns=fields.ns("offset_ms"),
        length_ns=fields.ns("length_ms"),
        generation=fields.integer("generation"),
        collected=fields.integer("collected", 0),
        thread=fields.text("thread", ""),
        own=fields.flag("own", False),
    )


def _work_to_dict(work: EarlierWork) -> Json:
    short = work.short
    return {
        "kind": work.kind.value,
        "name": work.name,
        "task": work.task,
        "ago_ms": ms(work.ago_ns),
        "length_ms": ms(work.length_ns),
        "callbacks": work.callbacks,
        "longest_ms": ms(work.longest_ns),
        "short_turns": short.turns if short is not None else 0,
        "short_ms": ms(short.busy_ns) if short is not None else 0.0,
        "short_callbacks": short.callbacks if short is not None else None,
        "idle_ms": ms(short.idle_ns) if short is not None else None,
    }


def _work(fields: Fields) -> EarlierWork:
    short = None
    if fields.has("short_callbacks"):
        short = ShortWork(
            turns=fields.integer("short_turns", 0),
            callbacks=fields.integer("short_callbacks"),
            busy_ns=fields.ns("short_ms", 0.0),
            idle_ns=fields.ns("idle_ms", 0.0),
        )
    return EarlierWork(
        kind=fields.choice("kind", WorkKind, WorkKind.TURN.value),
        name=fields.optional_text("name"),
        task=fields.optional_text("task"),
        ago_ns=fields.ns("ago_ms"),
        length_ns=fields.ns("length_ms"),
        callbacks=fields.integer("callbacks", 0),
        longest_ns=fields.ns("longest_ms", 0.0),
        short=short,
    )


def _short_to_dict(short: ShortWork) -> Json:
    return {
        "turns": short.turns,
        "callbacks": short.callbacks,
        "busy_ms": ms(short.busy_ns),
        "idle_ms": ms(short.idle_ns),
    }


def _short(fields: Fields) -> ShortWork:
    return ShortWork(
        turns=fields.integer("turns", 0),
        callbacks=fields.integer("callbacks", 0),
        busy_ns=fields.ns("busy_ms", 0.0),
        idle_ns=fields.ns("idle_ms", 0.0),
    )
