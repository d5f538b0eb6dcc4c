"""Causes, severities and degrees of certainty in words."""

from __future__ import annotations

from loopcanary.model.stall import Cause, Severity

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
_SEVERITY_WORDS = {Severity.STALL: "stall", Severity.HANG: "hang", Severity.ANR: "not responding"}
_CONFIDENCE_WORDS = ((0.9, "certain"), (0.7, "likely"), (0.4, "possible"))


def cause_words(cause: Cause) -> str:
    """The cause as half a sentence: `waiting for a lock`."""
    return _CAUSE_WORDS[cause]


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
