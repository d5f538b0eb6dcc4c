"""A small label in the window in front: frames a second, and the last stall. For widgets.

It is a child of the window, lets the mouse through, takes no focus, and paints itself: no style sheet of the
program's reaches it. What it paints is nobody's frame. Its timer is one of the application's loop.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopcanary.probes.qt.front import QtFront
    from loopcanary.protocols import Board

_EVERY_MS = 500
_MARGIN = 6
_PADDING = 4


class QtOverlay:
    """Of one application. All on its thread, but for `close`; nothing is raised."""

    def __init__(self, binding: str, front: QtFront, board: Board) -> None:
        self._binding = binding
        self._front = front
        self._board = board
        self._timer: Any = None
        self._label: Any = None
        self._label_type: Any = None
        self._paints = 0
        self._is_over = False
        self._moved = False

    def begin(self) -> None:
        """There is a window. Idempotent, and cheap then."""
        if self._timer is None and not self._is_over and f"{self._binding}.QtWidgets" in sys.modules:
            core = sys.modules[f"{self._binding}.QtCore"]
            self._timer = core.QTimer()
            self._timer.timeout.connect(self._tick)
            self._timer.start(_EVERY_MS)

    def close(self) -> None:
        """It goes: at once, or, where another thread says so, with the timer's next turn."""
        self._is_over = True
        if threading.get_ident() == threading.main_thread().ident:
            self._remove()

    def own_paints(self) -> int | None:
        """How many of the widgets that were painted since it was last asked were the label; None: it moved
        itself, and what else was painted was so for its sake."""
        paints, self._paints = self._paints, 0
        moved, self._moved = self._moved, False
        return None if moved else paints

    # ---- the label ------------------------------------------------------------------------------

    def _tick(self) -> None:
        try:
            if self._is_over:
                self._remove()
            else:
                self._show(self._front.window())
        except Exception:  # noqa: BLE001 - it is the program's window; no overlay is better than an error
            self._is_over = True

    def _show(self, window: Any) -> None:
        widgets = sys.modules[f"{self._binding}.QtWidgets"]
        label = self._label
        if not isinstance(window, widgets.QWidget):
            return
        if label is None or not _is_in(label, window):
            self._drop()
            label = self._label = self._make_label(window)
        label.say(self._board.text(threading.get_ident(), time.monotonic_ns()))

    def _make_label(self, window: Any) -> Any:
        if self._label_type is None:  # bindings never free what they make for a type
            self._label_type = self._make_type()
        return self._label_type(window)

    def _make_type(self) -> Any:
        """It keeps no window: one that the program lets go of goes."""
        widgets, gui, core = (
            sys.modules[f"{self._binding}.{name}"] for name in ("QtWidgets", "QtGui", "QtCore")
        )
        overlay = self
        attribute = core.Qt.WidgetAttribute
        to_the_left = core.Qt.AlignmentFlag.AlignLeft | core.Qt.AlignmentFlag.AlignVCenter

        class LoopcanaryOverlay(widgets.QWidget):  # type: ignore[name-defined,misc]
            def __init__(self, window: Any) -> None:
                super().__init__(window)
                self.setObjectName("loopcanary overlay")
                self.setAttribute(attribute.WA_TransparentForMouseEvents)
                self._text = ""

            def say(self, text: str) -> None:
                lasts = text.partition("\n")[2] == self._text.partition("\n")[2] and self.isVisible()
                # What it covers need not be painted; a style sheet takes this back.
                self.setAttribute(attribute.WA_OpaquePaintEvent)
                if text != self._text:
                    self._text = text
                    self.update()
                metrics = self.fontMetrics()
                lines = text.split("\n")
                wide = max(metrics.horizontalAdvance(line) for line in lines) + 2 * _PADDING
                high = len(lines) * metrics.lineSpacing() + 2 * _PADDING
                if lasts:  # what it uncovers has to be painted: not for each figure that is shorter
                    wide = max(wide, self.width())
                left = max(0, self.parentWidget().width() - wide - _MARGIN)
                if (left, wide, high) != (self.x(), self.width(), self.height()) or not self.isVisible():
                    overlay._moved = True
                    self.setGeometry(left, _MARGIN, wide, high)
                    self.show()
                    self.raise_()

            def paintEvent(self, event: Any) -> None:  # noqa: ARG002, N802 - Qt's name
                overlay._paints += 1
                try:
                    painter = gui.QPainter(self)
                    painter.fillRect(self.rect(), gui.QColor(32, 32, 32))
                    painter.setPen(gui.QColor(240, 240, 240))
                    inside = self.rect().adjusted(_PADDING, 0, -_PADDING, 0)
                    painter.drawText(inside, int(to_the_left.value), self._text)
                    painter.end()
                except Exception:  # noqa: BLE001 - PyQt ends the program for one
                    return

        return LoopcanaryOverlay

    def _drop(self) -> None:
        label, self._label = self._label, None
        if label is not None:
            try:
                self._moved = True
                label.hide()
                label.setParent(None)
                label.deleteLater()
            except RuntimeError:  # gone with its window
                return

    def _remove(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            try:
                timer.stop()
            except RuntimeError:  # the application is gone
                return
        self._drop()


def _is_in(label: Any, window: Any) -> bool:
    try:
        return label.parentWidget() is window
    except RuntimeError:
        return False
