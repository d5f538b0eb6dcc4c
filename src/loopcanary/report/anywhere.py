"""What has no one place: groups of stalls, and parts of a stall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopcanary.model import Cause

if TYPE_CHECKING:
    from loopcanary.model import Portion
    from loopcanary.model.search import StallGroup

ANYWHERE = "in whatever code had its turn; each stall has its own place"
NO_LINE = "no line is to blame"


def is_anywhere(group: StallGroup) -> bool:
    """Whether the stalls struck any code; their store names no place then."""
    return group.cause is Cause.HOST and group.count > 1 and group.culprit is None


def is_blameless(portion: Portion) -> bool:
    """Whether this part struck code by chance: its frames were read, and none is at fault."""
    return portion.culprit is None and portion.cause in (Cause.HOST, Cause.GC)
