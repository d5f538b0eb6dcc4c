"""Calls of a running program that were traced for a while: as a document, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from loopcanary.document.makers import NOTHING, dim, line, strong
from loopcanary.document.parts import Block, Document
from loopcanary.document.trees import tree_of_calls
from loopcanary.model.calls import Recording, ThreadCalls
from loopcanary.model.units import format_duration
from loopcanary.wire import Json, time_to_text, to_wire
from loopcanary.words.text import printable

SCHEMA = 1
NOTHING_CALLED = "none of the chosen functions was called"


def recording_document(recording: Recording) -> Document:
    return Document(tuple(_blocks(recording)))


def _blocks(recording: Recording) -> Iterator[Block]:
    session, took = recording.session, format_duration(recording.duration_ns)
    yield line(
        strong(f"process {session.pid}"), f"  {printable(session.name, 60)}  ", dim(f"calls in {took}")
    )
    if not recording.threads:
        yield line(dim(NOTHING_CALLED))
    for thread in recording.threads:
        yield NOTHING
        yield line(strong(thread_words(thread)))
        yield from tree_of_calls(thread.calls)


def thread_words(thread: ThreadCalls) -> str:
    """`MainThread (asyncio)`."""
    loop = f" ({printable(thread.loop, 60)})" if thread.loop else ""
    return f"{printable(thread.thread, 100)}{loop}"


def render_json(recording: Recording) -> str:
    """Fields are added, never renamed: docs/how-to/methods.md."""
    return json.dumps(_to_dict(recording), indent=2) + "\n"


def _to_dict(recording: Recording) -> Json:
    return {
        "schema": SCHEMA,
        "pid": recording.session.pid,
        "session": recording.session.id,
        "name": recording.session.name,
        "began_at": time_to_text(recording.began_wall_ns),
        "duration_ms": recording.duration_ns / 1_000_000,
        "threads": [
            {
                "tid": thread.tid,
                "thread": thread.thread,
                "loop": thread.loop or None,
                "calls": to_wire(thread.calls),
            }
            for thread in recording.threads
        ],
    }
