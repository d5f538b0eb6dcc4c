"""Qt, by PySide or PyQt: updates, signals, grabs and override cursors of widgets.

What a look asks is asked of Qt's own classes, past what the program may have put over them. Only the
application's thread: widgets are of no other.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from loopcanary.model.issues import windows as names
from loopcanary.tracers.windows.watch import (
    HARMLESS,
    Harm,
    Hooks,
    LeftOn,
    WindowWatch,
    codes_inside,
    places_inside,
    takes_cursor,
    takes_none,
    takes_one,
    takes_two,
)

AWAITS = ("PySide6.QtWidgets", "PyQt6.QtWidgets", "PyQt5.QtWidgets", "PySide2.QtWidgets")
_MINUTE = 6
"""In limits, of 10 s as a rule: what people may mean for a while, as a wait cursor over work in a thread."""
_SAYS_WAIT = ("WaitCursor", "BusyCursor", "ForbiddenCursor")


class QtStates:
    """What is switched on in the application's windows."""

    kind = "qt"

    def __init__(
        self, watch: Callable[[], WindowWatch], hooks: Hooks, contain: Callable[[Any], object]
    ) -> None:
        """`contain` calls a function, so that nothing gets out."""
        self._watch = watch()
        self._hooks = hooks
        self._contain = contain
        self._cursors: list[object] = []
        self._thread: int | None = None
        """The application's, once it is known."""

    def put_in(self) -> None:
        """Puts the hooks in: the module of the widgets was imported."""
        binding = next(name for name in AWAITS if name in sys.modules).partition(".")[0]
        self._core = sys.modules[f"{binding}.QtCore"]
        self._gui = sys.modules[f"{binding}.QtGui"].QGuiApplication
        widgets = sys.modules[f"{binding}.QtWidgets"]
        self._widget, self._application = widgets.QWidget, widgets.QApplication
        self._asks = {
            names.UPDATES_DISABLED: self._are_updates_missed,
            names.SIGNALS_BLOCKED: self._are_signals_missed,
            names.MOUSE_GRAB: self._is_mouse_missed,
            names.KEYBOARD_GRAB: self._is_keyboard_missed,
        }
        self._hooks.stay, self._hooks.has_pyqt = True, binding.startswith("PyQt")
        hook, static = self._hooks.observe, self._hooks.observe_static
        hook(
            self._widget, "setUpdatesEnabled", self._switch(names.UPDATES_DISABLED, is_on_by=False), takes_two
        )
        hook(
            self._core.QObject, "blockSignals", self._switch(names.SIGNALS_BLOCKED, is_on_by=True), takes_two
        )
        hook(self._widget, "grabMouse", self._grab(names.MOUSE_GRAB), takes_cursor)
        hook(self._widget, "grabKeyboard", self._grab(names.KEYBOARD_GRAB), takes_one)
        hook(self._widget, "releaseMouse", self._release(names.MOUSE_GRAB), takes_one)
        hook(self._widget, "releaseKeyboard", self._release(names.KEYBOARD_GRAB), takes_one)
        static(self._gui, "setOverrideCursor", lambda frame, _: self._cursor(frame), takes_one)
        static(self._gui, "restoreOverrideCursor", lambda _, __: self._cursor_back(), takes_none)
        for application in (self._application, self._gui, self._core.QCoreApplication):
            for name in ("exec", "exec_"):
                self._hooks.mark(application, name)

    def _switch(self, blocked_by: str, *, is_on_by: bool) -> Callable[[FrameType, tuple[Any, ...]], None]:
        def seen(frame: FrameType, args: tuple[Any, ...]) -> None:
            if bool(args[1]) is not is_on_by:
                self._off(blocked_by, args[0])
            elif isinstance(args[0], self._widget):
                self._on((blocked_by, id(args[0])), blocked_by, weakref.ref(args[0]), frame)

        return seen

    def _grab(self, blocked_by: str) -> Callable[[FrameType, tuple[Any, ...]], None]:
        return lambda frame, args: self._on(
            (blocked_by, id(args[0])), blocked_by, weakref.ref(args[0]), frame
        )

    def _release(self, blocked_by: str) -> Callable[[FrameType, tuple[Any, ...]], None]:
        return lambda _, args: self._off(blocked_by, args[0])

    def _cursor(self, frame: FrameType) -> None:
        key = object()
        self._cursors.append(key)
        self._on(key, names.OVERRIDE_CURSOR, lambda: key, frame)

    def _cursor_back(self) -> None:
        if self._cursors:
            self._watch.off(self._cursors.pop())

    def _off(self, blocked_by: str, thing: Any) -> None:
        self._watch.off((blocked_by, id(thing)))

    def _on(self, key: object, blocked_by: str, what: Callable[[], Any], frame: FrameType) -> None:
        if threading.get_ident() == self._thread or self._is_here():
            self._watch.on(key, blocked_by, what, lambda: places_inside(frame, self._is_loop))
            self._ask()

    def _is_here(self) -> bool:
        """Whether this is the application's thread."""
        application = self._core.QCoreApplication.instance()
        if application is None or application.thread() != self._core.QThread.currentThread():
            return False
        self._thread = threading.get_ident()
        return True

    def _ask(self) -> None:
        if self._watch.wants_look():
            self._core.QTimer.singleShot(self._watch.look_ms, lambda: self._contain(self._look))

    def _look(self) -> None:
        if self._watch.look(self._harm, codes_inside(sys._getframe(), self._is_loop)):
            self._ask()

    def _is_loop(self, frame: FrameType) -> bool:
        return frame.f_code in self._hooks.marks

    def _harm(self, state: LeftOn) -> Harm | None:
        if state.blocked_by == names.OVERRIDE_CURSOR:
            return self._cursor_harm(state.what())
        thing = state.what()
        try:
            return None if thing is None else self._asks[state.blocked_by](thing)
        except RuntimeError:  # Qt has deleted what Python still has a word for
            return None

    def _cursor_harm(self, key: object) -> Harm | None:
        """Only of the cursor that is shown, if it says to wait: others are a mode, or hide the pointer."""
        cursor = self._gui.overrideCursor()
        if cursor is None:
            return None
        shapes = self._core.Qt.CursorShape
        wait = next((name for name in _SAYS_WAIT if cursor.shape() == getattr(shapes, name)), "")
        return Harm(wait, _MINUTE) if self._cursors[-1:] == [key] else HARMLESS

    def _are_updates_missed(self, widget: Any) -> Harm | None:
        """Not of one into which others paint: a player's, an OpenGL window."""
        if self._widget.updatesEnabled(widget):
            return None
        attribute = self._core.Qt.WidgetAttribute
        is_foreign = self._widget.testAttribute(widget, attribute.WA_PaintOnScreen) or (
            self._widget.testAttribute(widget, attribute.WA_NativeWindow)
            and not self._widget.isWindow(widget)
        )
        return self._named(widget) if self._is_shown(widget) and not is_foreign else HARMLESS

    def _are_signals_missed(self, widget: Any) -> Harm | None:
        """Only of one that takes input, and looks as if it did."""
        if not self._core.QObject.signalsBlocked(widget):
            return None
        is_input = self._widget.focusPolicy(widget) != self._core.Qt.FocusPolicy.NoFocus
        is_usable = is_input and self._is_shown(widget) and self._widget.isEnabled(widget)
        return self._named(widget) if is_usable else HARMLESS

    def _is_mouse_missed(self, widget: Any) -> Harm | None:
        if self._widget.mouseGrabber() is not widget:
            return None
        if self._takes_nothing(widget):
            return self._named(widget)
        buttons = self._gui.mouseButtons()
        is_dragged = buttons != self._core.Qt.MouseButton.NoButton
        return HARMLESS if is_dragged or self._widget.isWindow(widget) else self._named(widget, _MINUTE)

    def _is_keyboard_missed(self, widget: Any) -> Harm | None:
        """Harm done by a widget that has grabbed the keyboard; None: it has not. A game's view does so on
        purpose: that harms only if a text field has the focus, or the view takes no input."""
        if self._widget.keyboardGrabber() is not widget:
            return None
        focused = self._application.focusWidget()
        by_text = self._core.Qt.WidgetAttribute.WA_InputMethodEnabled
        is_missed = (
            focused is not None
            and focused is not widget
            and not self._widget.isAncestorOf(widget, focused)
            and self._widget.testAttribute(focused, by_text)
        )
        return self._named(widget) if is_missed or self._takes_nothing(widget) else HARMLESS

    def _takes_nothing(self, grabber: Any) -> bool:
        """It is hidden or disabled, where the application shows any window, or another window is modal."""
        modal = self._application.activeModalWidget()
        if modal is not None and not self._is_of(modal, grabber):
            return True
        takes_input = self._is_shown(grabber) and self._widget.isEnabled(grabber)
        return not takes_input and any(map(self._is_shown, self._application.topLevelWidgets()))

    def _is_of(self, dialog: Any, widget: Any) -> bool:
        """It is in the dialog, or in a window that the dialog has opened."""
        while widget is not None and widget is not dialog:
            widget = self._widget.parentWidget(widget)
        return widget is dialog

    def _is_shown(self, widget: Any) -> bool:
        window = self._widget.window(widget)
        return bool(self._widget.isVisible(widget) and not self._widget.isMinimized(window))

    def _named(self, widget: Any, patience: int = 1) -> Harm:
        """`QTableView orders`: its class, and its name where the program gave it one."""
        own = self._core.QObject.objectName(widget)
        return Harm(f"{type(widget).__name__} {own}".strip(), patience)
