"""The names of issue kinds."""

from __future__ import annotations

from typing import ClassVar

from loopcanary.late_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class IssueKind:
    """A kind of issue. These are loopcanary's own; a third party's has a name of its own."""

    value: str
    """On the wire, in stores and in addresses."""

    STALL: ClassVar[IssueKind]
    JANK: ClassVar[IssueKind]
    INPUT: ClassVar[IssueKind]
    IDLE: ClassVar[IssueKind]
    STARTUP: ClassVar[IssueKind]
    SLOW_METHOD: ClassVar[IssueKind]
    BOOT_HANG: ClassVar[IssueKind]
    DEADLOCK: ClassVar[IssueKind]
    EXIT_HANG: ClassVar[IssueKind]


IssueKind.STALL = IssueKind("stall")
IssueKind.JANK = IssueKind("jank")
IssueKind.INPUT = IssueKind("input")
IssueKind.IDLE = IssueKind("idle")
IssueKind.STARTUP = IssueKind("startup")
IssueKind.SLOW_METHOD = IssueKind("slow-method")
IssueKind.BOOT_HANG = IssueKind("boot-hang")
IssueKind.DEADLOCK = IssueKind("deadlock")
IssueKind.EXIT_HANG = IssueKind("exit-hang")
