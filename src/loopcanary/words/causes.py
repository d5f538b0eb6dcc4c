"""Causes, severities and degrees of certainty in words."""

from __future__ import annotations

from loopcanary.model import Issue
from loopcanary.model.search import IssueGroup
from loopcanary.model.stack_frame import StackFrame
from loopcanary.model.stall import Cause, Severity, Stall

_CAUSE_WORDS = {
    Cause.CPU: "code was computing",
    Cause.NATIVE_CPU: "a C call was computing",
    Cause.GIL: "another thread held the GIL",
    Cause.SLEEP: "sleeping",
    Cause.LOCK: "waiting for a lock",
    Cause.DISK_IO: "waiting for a file",
    Cause.NETWORK_IO: "waiting for the network",
    Cause.DNS: "waiting for a name to be resolved",
    Cause.SUBPROCESS: "waiting for a child process",
    Cause.GC: "garbage collection",
    Cause.IMPORT: "importing modules",
    Cause.BURST: "many short callbacks ran in one turn",
    Cause.HOST: "runnable, but given no CPU by the host",
    Cause.CRASH: "crashed by a fault of its own",
    Cause.UNKNOWN: "not enough evidence",
}
_CONDITION_WAIT = ("threading.py", "Condition.wait")
_WOKEN = {
    ("queue.py", "Queue.get"): "waiting for an item in a queue",
    ("queue.py", "Queue.put"): "waiting for room in a queue",
    ("queue.py", "Queue.join"): "waiting for a queue's tasks to be done",
    ("threading.py", "Event.wait"): "waiting for an event",
    ("_base.py", "Future.result"): "waiting for the result of a Future",
    ("_base.py", "Future.exception"): "waiting for the result of a Future",
}
"""What waits in a condition: that is no lock that a thread holds."""
_SEVERITY_WORDS = {Severity.STALL: "stall", Severity.HANG: "hang", Severity.ANR: "not responding"}
_CONFIDENCE_WORDS = ((0.9, "certain"), (0.7, "likely"), (0.4, "possible"))


def cause_words(cause: Cause, stall: Stall | None = None) -> str:
    """The cause as half a sentence: `waiting for a lock`. `stall`: one whose stacks may say more of it."""
    more = _woken_words(stall) if stall is not None and cause is stall.cause is Cause.LOCK else None
    return more or _CAUSE_WORDS[cause]


def has_cause(one: Issue | IssueGroup) -> bool:
    """Whether a cause is to be said: of a stall always; of another issue where it has one, and lasted."""
    if one.kind.value == "stall":
        return True
    lasted_ns = one.max_ns if isinstance(one, IssueGroup) else one.duration_ns
    return one.cause.value != "unknown" and lasted_ns > 0


def _woken_words(stall: Stall) -> str | None:
    """`waiting for an item in a queue`, where it did so for most of its time."""
    times: dict[str | None, int] = {}
    for stack in stall.stacks:
        inner, *outer = map(_place, stack.frames[:2]) if stack.frames else ((),)
        words = _WOKEN.get(outer[0]) if outer and inner == _CONDITION_WAIT else None
        times[words] = times.get(words, 0) + stack.weight_ns
    most = max(times, key=times.__getitem__, default=None)
    return most if most is not None and 2 * times[most] > sum(times.values()) else None


def _place(frame: StackFrame) -> tuple[str, str]:
    return frame.file.replace("\\", "/").rpartition("/")[2], frame.qualname


def severity_word(severity: Severity) -> str:
    """stall, hang or not responding."""
    return _SEVERITY_WORDS[severity]


def severity_words(severity: Severity) -> str:
    """The same with the word of the options and of JSON: `not responding (ANR)`."""
    return severity_word(severity) + (" (ANR)" if severity is Severity.ANR else "")


def confidence_word(confidence: float) -> str:
    """How sure a verdict is: certain (0.9 and more), likely (0.7), possible (0.4), or a guess."""
    return next((word for least, word in _CONFIDENCE_WORDS if confidence >= least), "a guess")


def struck_words(cause: Cause) -> str:
    """What is said in the place of a line that is not to blame, as it is struck by chance; else empty."""
    return "it was on this line when it lost the CPU" if cause is Cause.HOST else ""


_BLAMELESS = frozenset({Cause.HOST, Cause.GC, Cause.GIL})
"""What can strike a thread in any line: that no line is named does not mean that none was read."""


def no_line_words(cause: Cause) -> str:
    """What is said in the place of a line where there is none."""
    return "no line of this thread is at fault" if cause in _BLAMELESS else "no frame could be read"
