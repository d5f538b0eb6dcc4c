"""Names of the watched program in formats that are strict about text."""

from __future__ import annotations

import json
from typing import Any

from loopcanary.model import Activity, EarlierWork, StackFrame, Stall
from loopcanary.model.timeline import WorkKind
from loopcanary.words.text import count_of, place, printable
from loopcanary.words.waiting import lock_words

NAME_MAX = 200


def name_of(text: str) -> str:
    """A name in one line of readable length, without control, direction or unpaired characters."""
    return printable(text, NAME_MAX)


def whole(text: str) -> str:
    """The text with what UTF-8 cannot hold escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def encoded(value: Any) -> str:
    """JSON in ASCII that can stand in an HTML page."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def frame_name(frame: StackFrame) -> str:
    return name_of(frame.qualname or frame.function or "?")


def short_place(frame: StackFrame) -> str:
    """`app.py:12`; the file alone where the line is not known."""
    return place(name_of(frame.file.rpartition("/")[2] or frame.file), frame.line, "")


def activity_words(activity: Activity) -> str:
    """`blocked: read of /srv/big.csv`, `gil-wait: held by worker`."""
    words = activity.doing.value
    if activity.syscall is not None:
        words += f": {activity.syscall}"
        if activity.waited_on is not None and activity.waited_on.name:
            words += f" of {activity.waited_on.name}"
    held = lock_words(activity.lock, activity.holder)
    return name_of(f"{words}{' ' if activity.lock else ', '}{held}" if held else words)


def earlier_name(work: EarlierWork) -> str:
    """The callback's name, or `turn of 12 callbacks`."""
    if work.kind is WorkKind.TURN:
        return f"turn of {count_of(work.callbacks, 'callback')}" if work.callbacks else "turn"
    return name_of(work.name) if work.name else "(no name)"


def facts_of(stall: Stall) -> dict[str, str]:
    """What formats show of a stall beside its time, as far as it is known."""
    culprit, holder = stall.culprit, stall.holder
    facts = {
        "cause": stall.cause.value,
        "culprit": place_of(stall),
        "source": None if culprit is None else culprit.source,
        "callback": stall.callback,
        "scene": stall.scene,
        "holder": None if holder is None else holder.thread,
        "advice": stall.advice,
        "group": stall.fingerprint,
        "id": stall.id,
    }
    return {name: whole(value) for name, value in facts.items() if value}


def place_of(stall: Stall) -> str | None:
    """The culprit's `orders.py:87`."""
    culprit = stall.culprit
    return None if culprit is None else f"{culprit.file}:{culprit.line}"
