"""Windows that take no input or paint nothing, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loopcanary.model.issues import windows as names
from loopcanary.model.units import format_duration
from loopcanary.words.text import count_of, printable

if TYPE_CHECKING:
    from loopcanary.model.issues.windows import BlockedWindow

_NAME_MAX = 120
_TITLES = {
    names.UPDATES_DISABLED: "{} is not painted: its updates are disabled",
    names.SIGNALS_BLOCKED: "{} does nothing: its signals are blocked",
    names.MOUSE_GRAB: "{} has grabbed the mouse, and not released it",
    names.KEYBOARD_GRAB: "{} has grabbed the keyboard, and not released it",
    names.OVERRIDE_CURSOR: "{} was set for the application, and not taken back",
    names.TK_GRAB: "{} has the grab, and is not visible",
    names.AFTER_STORM: "{} is never idle, and draws nothing",
    names.INSENSITIVE: "{} takes no input: it is insensitive",
    names.GTK_GRAB: "{} has the grab, and is not visible",
    names.MODAL_WINDOW: "{} is modal, and is not visible",
}
_ADVICE = {
    names.UPDATES_DISABLED: "Call setUpdatesEnabled(True) in a `finally`: it runs also where the code raises",
    names.SIGNALS_BLOCKED: "Use `with QSignalBlocker(widget):`, which ends also where the code raises",
    names.MOUSE_GRAB: "Call releaseMouse() in a `finally`, and before the widget is hidden",
    names.KEYBOARD_GRAB: "Call releaseKeyboard() in a `finally`, and before the widget is hidden",
    names.OVERRIDE_CURSOR: "Call restoreOverrideCursor() in a `finally`, once for each setOverrideCursor()",
    names.TK_GRAB: "Call grab_release() before withdraw(); destroy() releases the grab by itself",
    names.AFTER_STORM: "Let `after` wait for some milliseconds: Tk draws when it has nothing else to do",
    names.INSENSITIVE: "Call set_sensitive(True) in a `finally`: it runs also where the code raises",
    names.GTK_GRAB: "Call grab_remove() before the widget is hidden",
    names.MODAL_WINDOW: "Call present() to show it again, or hide() where it is done",
}


def window_words(issue: BlockedWindow) -> str:
    """`QTableView orders is not painted: its updates are disabled`."""
    return _TITLES.get(issue.blocked_by, "{}").format(printable(issue.subject, _NAME_MAX))


def window_advice(issue: BlockedWindow) -> str | None:
    """What to do about it; None: it is of a kind that is not known."""
    return _ADVICE.get(issue.blocked_by)


def of_window(issue: BlockedWindow) -> Iterator[str]:
    """How long, and how often."""
    line = ": this line switched it on" if issue.switched_on else ""
    yield f"for {format_duration(issue.duration_ns)}, while the loop was healthy{line}"
    if issue.blocked_by == names.AFTER_STORM:
        yield f"{count_of(issue.times, 'call')} of `after` pending"
    elif issue.times > 1:
        yield f"it was switched on {issue.times} times, and not off"
