"""Windows that take no input or paint nothing, by a state that was left on."""

from __future__ import annotations

from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model.issues.facts import ReportedFacts
from loopcanary.model.issues.kind import IssueKind
from loopcanary.model.spelling import spelled
from loopcanary.model.stack_frame import StackFrame

UPDATES_DISABLED = "updates-disabled"
SIGNALS_BLOCKED = "signals-blocked"
MOUSE_GRAB = "mouse-grab"
KEYBOARD_GRAB = "keyboard-grab"
OVERRIDE_CURSOR = "override-cursor"
TK_GRAB = "tk-grab"
AFTER_STORM = "after-storm"
INSENSITIVE = "insensitive"
GTK_GRAB = "gtk-grab"
MODAL_WINDOW = "modal-window"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedWindow(ReportedFacts):
    """A state that was switched on, did harm while the loop was healthy, and was not switched off."""

    kind = IssueKind("blocked-window")
    blocked_by: str = ""
    """One of the names above."""
    subject: str = ""
    """What has it: `QTableView orders`, `Toplevel .!toplevel`."""
    times: int = 1
    """How often it was switched on, and not off; of an after-storm, the calls that are pending."""
    switched_on: tuple[StackFrame, ...] = field(default=(), metadata=spelled(name="frames"))
    """Where, the first time; innermost first."""

    @property
    def searched(self) -> tuple[str, ...]:
        return (self.subject,)
