"""The names of issue kinds."""

from __future__ import annotations

from enum import Enum


class IssueKind(Enum):
    """Names on the wire. Kinds of later tracers join here, each with its own frozen type."""

    STALL = "stall"
    JANK = "jank"
    INPUT = "input"
    IDLE = "idle"
    STARTUP = "startup"
    SLOW_METHOD = "slow-method"
