"""Causes, severities and degrees of certainty in words."""

from __future__ import annotations

from loopcanary.model.stall import Cause, Severity

_CAUSE_WORDS = {
    Cause.CPU: "Python code was computing",
    Cause.NATIVE_CPU: "a C call was computing",
    Cause.GIL: "another thread held the GIL",
    Cause.SLEEP: "it slept",
    Cause.LOCK: "it waited for a lock",
    Cause.DISK_IO: "it waited for a file",
    Cause.NETWORK_IO: "it waited for the network",
    Cause.DNS: "it waited for a name to be resolved",
    Cause.SUBPROCESS: "it waited for a child process",
    Cause.GC: "garbage was collected",
    Cause.IMPORT: "modules were imported",
    Cause.BURST: "many short callbacks ran in one turn",
    Cause.HOST: "the thread was ready but the host did not run it",
    Cause.UNKNOWN: "there is not enough evidence",
}
_SEVERITY_WORDS = {Severity.STALL: "stall", Severity.HANG: "hang", Severity.ANR: "ANR"}
_CONFIDENCE_WORDS = ((0.9, "certain"), (0.7, "likely"), (0.4, "possible"))


def cause_words(cause: Cause) -> str:
    """The cause as half a sentence: `it waited for a lock`."""
    return _CAUSE_WORDS[cause]


def severity_word(severity: Severity) -> str:
    """stall, hang or ANR."""
    return _SEVERITY_WORDS[severity]


def confidence_word(confidence: float) -> str:
    """How sure a verdict is: certain (0.9 and more), likely (0.7), possible (0.4), or a guess."""
    return next((word for least, word in _CONFIDENCE_WORDS if confidence >= least), "a guess")


def struck_words(cause: Cause) -> str:
    """What is said in the place of a line that is not to blame, as it is struck by chance; else empty."""
    return "it ran here when the machine took it away" if cause is Cause.HOST else ""


_BLAMELESS = frozenset({Cause.HOST, Cause.GC, Cause.GIL})
"""What strikes a thread in whatever line it is in: that none is named does not mean that none was read."""


def no_line_words(cause: Cause) -> str:
    """What is said in the place of a line where there is none."""
    return "no line is to blame" if cause in _BLAMELESS else "no frame could be read"
