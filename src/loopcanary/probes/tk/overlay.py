"""A small label in the window in front: frames a second, and the last stall.

It is placed over what is there, which leaves the window's own layout alone, and goes to the other corner when
the pointer comes: Tk's widgets let no click through. What it draws is nobody's frame. Its timer is `after`.

The program's widgets are not kept: Tcl ends the process where an interpreter is freed on another thread than
its own.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from loopcanary.protocols import Board

_EVERY_MS = 500
_PADDING = 5
_TOP = {"relx": 1.0, "rely": 0.0, "x": -6, "y": 6, "anchor": "ne"}
_BOTTOM = {"relx": 1.0, "rely": 1.0, "x": -6, "y": -6, "anchor": "se"}
_LOOK = {
    "background": "#202020",
    "foreground": "#f0f0f0",
    "borderwidth": 0,
    "highlightthickness": 0,
    "padx": _PADDING,
    "pady": 2,
    "font": "TkSmallCaptionFont",
    "justify": "left",
    "anchor": "w",
    "takefocus": 0,
}


class TkOverlay:
    """Of one thread that runs Tk. All on it, but for `close`; nothing is raised."""

    def __init__(self, native: ModuleType, board: Board, front: Callable[[], str]) -> None:
        """`front`: the path of the window in front."""
        self._native = native
        self._board = board
        self._front = front
        self._root_seen: weakref.ref[Any] | None = None
        self._ident = 0
        self._command = ""
        self._timer: str | None = None
        self._label_made: weakref.ref[Any] | None = None
        self._wide = 0
        """Pixels."""
        self._is_over = False

    def begin(self, widget: Any) -> None:
        """There is a window, of this widget's program. Nothing while the one before is there."""
        if self._is_over or _is_there(self._root):
            return
        root = widget._root()
        self._root_seen, self._label_made = weakref.ref(root), None
        self._ident = threading.get_ident()
        self._command = root.register(self._tick)
        self._tick_later(root)

    def close(self) -> None:
        """It goes: at once, or, where another thread says so, with the timer's next turn."""
        self._is_over = True
        if self._root_seen is not None and threading.get_ident() == self._ident:
            self._remove()

    @property
    def _root(self) -> Any:
        return self._root_seen() if self._root_seen is not None else None

    @property
    def _label(self) -> Any:
        return self._label_made() if self._label_made is not None else None

    # ---- the label ------------------------------------------------------------------------------

    def _tick(self) -> None:
        try:
            if self._is_over:
                self._remove()
                return
            self._tick_later(self._root)
            self._show(self._front())
        except Exception:  # noqa: BLE001 - a window that is going; the next turn sees another
            return

    def _tick_later(self, root: Any) -> None:
        # The timer outlives the window, its command does not: of that Tcl would print an error.
        self._timer = root.tk.call("after", _EVERY_MS, "catch", self._command)

    def _show(self, front: str) -> None:
        try:
            window = self._root.nametowidget(front)
        except KeyError:  # a dialog of Tk's own
            return
        label = self._label
        if label is None or label.master is not window or not label.winfo_exists():
            self._drop()
            label = self._make_label(window)
        text = self._board.text(self._ident, time.monotonic_ns())
        before = label.cget("text")
        if text != before:
            lasts = text.partition("\n")[2] == before.partition("\n")[2]
            lines = text.split("\n")
            measured = [int(label.tk.call("font", "measure", _LOOK["font"], line)) for line in lines]
            # What it uncovers has to be drawn: not for each figure that is shorter.
            self._wide = max(self._wide if lasts else 0, *measured)
            label.configure(text=text)
            label.place(width=self._wide + 2 * _PADDING)
            label.lift()

    def _make_label(self, window: Any) -> Any:
        self._wide = 0
        label = sys.modules["tkinter"].Label(window, name="loopcanary_overlay", **_LOOK)
        label.bindtags((str(label),))
        label.bind("<Enter>", lambda _: self._give_way(label))
        label.place(_TOP)
        self._label_made = weakref.ref(label)
        self._native.tk_own_window(label.winfo_id())
        return label

    def _give_way(self, label: Any) -> None:
        try:
            label.place(_BOTTOM if label.place_info().get("anchor") == "ne" else _TOP)
        except Exception:  # noqa: BLE001 - as in _tick
            return

    def _drop(self) -> None:
        label, self._label_made = self._label, None
        if label is not None:
            self._native.tk_own_window(0)
            try:
                label.destroy()
            except Exception:  # noqa: BLE001 - gone with its window
                return

    def _remove(self) -> None:
        timer, self._timer = self._timer, None
        try:
            if timer is not None:
                self._root.tk.call("after", "cancel", timer)
                self._root.deletecommand(self._command)
        except Exception:  # noqa: BLE001 - gone with its window
            return
        self._drop()


def _is_there(root: Any) -> bool:
    try:
        return root is not None and bool(root.winfo_exists())
    except Exception:  # noqa: BLE001 - Tcl's interpreter is gone
        return False
