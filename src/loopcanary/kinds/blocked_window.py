"""Windows that take no input or paint nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopcanary.document.makers import prose, said
from loopcanary.document.parts import Block, Items
from loopcanary.document.verdict import where
from loopcanary.kinds.places import culprit_of, identity_of, stack_part
from loopcanary.model import Session
from loopcanary.model.issues import windows as names
from loopcanary.model.issues.windows import BlockedWindow
from loopcanary.model.units import format_duration
from loopcanary.protocols.kinds import Kind
from loopcanary.words.text import count_of, printable

_NAME_MAX = 120
_TITLES = {
    names.UPDATES_DISABLED: "{} is not painted: its updates are disabled",
    names.SIGNALS_BLOCKED: "{} does nothing: its signals are blocked",
    names.MOUSE_GRAB: "{} has grabbed the mouse, and not released it",
    names.KEYBOARD_GRAB: "{} has grabbed the keyboard, and not released it",
    names.OVERRIDE_CURSOR: "{} was set for the application, and never restored",
    names.TK_GRAB: "{} has the grab, and is not visible",
    names.AFTER_STORM: "{} is never idle, and draws nothing",
    names.INSENSITIVE: "{} takes no input: it is insensitive",
    names.GTK_GRAB: "{} has the grab, and is not visible",
    names.MODAL_WINDOW: "{} is modal, and is not visible",
}
_ADVICE = {
    names.UPDATES_DISABLED: "Call setUpdatesEnabled(True) in a `finally`: it also runs if the code raises",
    names.SIGNALS_BLOCKED: "Use `with QSignalBlocker(widget):`, which also ends if the code raises",
    names.MOUSE_GRAB: "Call releaseMouse() in a `finally`, and before the widget is hidden",
    names.KEYBOARD_GRAB: "Call releaseKeyboard() in a `finally`, and before the widget is hidden",
    names.OVERRIDE_CURSOR: "Call restoreOverrideCursor() in a `finally`, once for each setOverrideCursor()",
    names.TK_GRAB: "Call grab_release() before withdraw(); destroy() releases the grab by itself",
    names.AFTER_STORM: "Let `after` wait for some milliseconds: Tk draws when it has nothing else to do",
    names.INSENSITIVE: "Call set_sensitive(True) in a `finally`: it also runs if the code raises",
    names.GTK_GRAB: "Call grab_remove() before the widget is hidden",
    names.MODAL_WINDOW: "Call present() to show it again, or hide() when it is no longer needed",
}


class BlockedWindowKind(Kind[BlockedWindow]):
    """A state that was switched on, did harm while the loop was healthy, and was not switched off."""

    issue_class = BlockedWindow
    words = "blocked window"
    list_words = "blocked windows"
    is_found_early = True

    def title(self, issue: BlockedWindow) -> str:
        """`QTableView orders is not painted: its updates are disabled`."""
        return _TITLES.get(issue.blocked_by, "{}").format(printable(issue.subject, _NAME_MAX))

    def advice(self, issue: BlockedWindow) -> str | None:
        """How code of this toolkit leaves the state again."""
        return _ADVICE.get(issue.blocked_by)

    def evidence(self, issue: BlockedWindow) -> Iterator[str]:
        """How long, and how often."""
        line = ": this line switched it on" if issue.switched_on else ""
        yield f"for {format_duration(issue.duration_ns)}, while the loop was healthy{line}"
        if issue.blocked_by == names.AFTER_STORM:
            yield f"{count_of(issue.times, 'call')} of `after` pending"
        elif issue.times > 1:
            yield f"it was switched on {issue.times} times, and never off"

    def why(self, issue: BlockedWindow) -> Iterator[Block]:
        """The line. There is no cause beside it."""
        yield from where(issue.culprit, issue.cause)
        yield Items(tuple(said(prose(words)) for words in self.evidence(issue)))

    def parts(self, issue: BlockedWindow) -> tuple[Block, ...]:
        """How the program came to that line."""
        return stack_part("switched on here, and never off", issue.switched_on)

    def identity(self, issue: BlockedWindow) -> tuple[str, ...]:
        """What was left on, and the function that switched it on."""
        return f"blocked_by={issue.blocked_by}", *identity_of(issue.switched_on)

    def fitted(self, issue: BlockedWindow, session: Session) -> BlockedWindow:
        """With the line that switched it on."""
        return replace(issue, culprit=culprit_of(issue.switched_on, session))
