"""Which of Qt's windows is in front: its title is the scene of the application's thread.

Qt is asked when a window was activated or got another title, and at each frame; never at other events.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loopcanary._native import Native
    from loopcanary.protocols.loops import Windows

_CHANGED_MARK = "[*]"
"""Where a title has a star while the document is changed (QWidget.windowModified)."""


class QtFront:
    """Of one application."""

    def __init__(self, binding: str, native: Native, windows: Windows) -> None:
        self._binding = binding
        self._native = native
        self._windows = windows
        self._last: weakref.ref[Any] | None = None
        self.scene: str | None = None
        """Of the window that was in front when last looked."""

    def look(self) -> None:
        """Another window may be in front, or have another title. Any thread."""
        if threading.get_ident() == threading.main_thread().ident:
            window = self.window()
            if window is not None:
                self._is_at(self._scene_of(window))
                self._last = weakref.ref(window)

    def window(self) -> Any:
        """The one in front: a widget, or a window of Quick's. Without focus: the one that had it, or any on
        the screen; None: there is none. The application's thread."""
        widgets = sys.modules.get(f"{self._binding}.QtWidgets")
        if widgets is not None and widgets.QApplication.instance() is not None:
            found = widgets.QApplication.activeWindow()
            if found is not None:
                return found
        gui = sys.modules.get(f"{self._binding}.QtGui")
        if gui is None:
            return None
        return gui.QGuiApplication.focusWindow() or self._shown(widgets, gui)

    def _shown(self, widgets: Any, gui: Any) -> Any:
        last = self._last() if self._last is not None else None
        if last is not None and _is_shown(last):
            return last
        tops = widgets.QApplication.topLevelWidgets() if widgets is not None else ()
        shown = next((top for top in tops if _is_shown(top)), None)
        return shown or next((top for top in gui.QGuiApplication.allWindows() if _is_shown(top)), None)

    def scene_of_drawn(self, window: Any) -> str | None:
        """The scene of a window that was drawn."""
        if window is None:
            return None
        scene = self._scene_of(window)
        if self.scene is None:
            self.look()  # nothing was activated since we came
            if self.scene is None:
                self._is_at(scene)
        return scene

    def close(self) -> None:
        self.scene = None
        self._native.set_title(None)

    def _scene_of(self, window: Any) -> str:
        title = window.windowTitle() if hasattr(window, "windowTitle") else window.title()
        return self._windows.scene_of(
            title.replace(_CHANGED_MARK, ""), window.objectName() or type(window).__name__
        )

    def _is_at(self, scene: str) -> None:
        self.scene = scene
        self._native.set_title(scene)


def _is_shown(window: Any) -> bool:
    try:
        return bool(window.isVisible())
    except RuntimeError:  # Qt's object is gone, the binding's is not
        return False
