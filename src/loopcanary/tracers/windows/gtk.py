"""GTK 3 and 4, by PyGObject: windows that were made insensitive, grabs and modal windows that are not seen.

What a look asks is asked of GTK's own classes. Widgets are of the thread that runs the default context.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from loopcanary.model.issues import windows as names
from loopcanary.tracers.windows.watch import (
    HARMLESS,
    Harm,
    Hooks,
    LeftOn,
    Seen,
    WindowWatch,
    codes_inside,
    places_inside,
)

AWAITS = ("gi.overrides.Gtk",)
_MINUTE = 6
"""In limits, of 10 s as a rule: what people may mean for a while, over work in a thread."""
_LOOPS = (("GLib", "run"), ("Gio", "run"), ("Gtk", "main"), ("Gtk", "run"))
"""PyGObject's own functions that run a loop."""
_HOLDERS = (
    *("Window", "Box", "Grid", "Paned", "Notebook", "Stack", "Overlay"),
    *("ScrolledWindow", "Viewport", "Frame", "Fixed", "CenterBox"),
)
"""What holds a window's content, and is not a control itself."""
_SHOW_ONLY = (
    *("Label", "Image", "Picture", "ProgressBar", "LevelBar", "Spinner", "Separator", "Statusbar"),
    *("Scrollbar", "WindowControls"),
)
_WIDGETS_MAX = 2_000
"""That are asked at a look; where there are more, one of them may take input."""


class GtkStates:
    """What is switched on in the application's windows."""

    kind = "glib"

    def __init__(
        self, watch: Callable[[], WindowWatch], hooks: Hooks, contain: Callable[[Any], object]
    ) -> None:
        """`contain` calls a function, so that nothing gets out."""
        self._watch = watch()
        self._hooks = hooks
        self._contain = contain

    def put_in(self) -> None:
        """The overrides were imported, what they override before."""
        self._gtk = sys.modules["gi.overrides.Gtk"].Gtk
        self._glib = sys.modules["gi.repository.GLib"]
        self._is_3 = self._gtk._version.startswith("3")
        self._widget, self._window = self._gtk.Widget, self._gtk.Window
        self._holders, self._show_only = self._classes(_HOLDERS), self._classes(_SHOW_ONLY)
        modules = ((sys.modules.get(f"gi.overrides.{name}"), function) for name, function in _LOOPS)
        self._loops = {(module.__file__, function) for module, function in modules if module is not None}
        self._asks = {
            names.INSENSITIVE: self._is_sensitivity_missed,
            names.GTK_GRAB: self._is_grab_missed,
            names.MODAL_WINDOW: self._is_modal_missed,
        }
        self._hook(self._widget, "set_sensitive", self._sensitive)
        self._hook(self._widget, "grab_add", self._grabbed)
        self._hook(self._widget, "grab_remove", lambda _, args: self._off(names.GTK_GRAB, args[0]))
        for owner, name in (
            *((self._window, "set_modal"), (self._window, "present")),
            *((self._widget, name) for name in ("show", "show_all", "hide", "set_visible")),
        ):
            self._hook(owner, name, self._shown)

    def _classes(self, wanted: tuple[str, ...]) -> tuple[type[Any], ...]:
        return tuple(one for name in wanted if (one := getattr(self._gtk, name, None)) is not None)

    def _hook(self, owner: type[Any], name: str, seen: Seen) -> None:
        """Around what GTK has, below PyGObject's overrides; GTK 4 has no grabs."""
        own = next((each for each in owner.__mro__ if name in vars(each)), owner)
        self._hooks.observe(own, name, seen)

    def _sensitive(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        # Not by what was passed: from PyGObject 3.58 on that may be left out.
        if self._widget.get_sensitive(args[0]):
            self._off(names.INSENSITIVE, args[0])
        elif isinstance(args[0], self._holders):
            self._on(names.INSENSITIVE, args[0], frame)

    def _grabbed(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        self._on(names.GTK_GRAB, args[0], frame)

    def _shown(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        """It was shown, hidden or made modal: visible and modal, it has the grab."""
        if isinstance(args[0], self._window):
            if self._window.get_modal(args[0]) and self._widget.get_visible(args[0]):
                self._on(names.MODAL_WINDOW, args[0], frame)
            else:
                self._off(names.MODAL_WINDOW, args[0])

    def _off(self, blocked_by: str, widget: Any) -> None:
        self._watch.off((blocked_by, hash(widget)))

    def _on(self, blocked_by: str, widget: Any, frame: FrameType) -> None:
        """By the widget of C: Python's may be made anew each time."""
        is_here = threading.get_ident() == threading.main_thread().ident
        if is_here or self._glib.MainContext.default().is_owner():
            what = self._widget.weak_ref(widget)
            # `idle_add(box.set_sensitive, False)`: no line of the program's calls it.
            self._watch.on(
                (blocked_by, hash(widget)),
                blocked_by,
                what,
                lambda: () if self._is_loop(frame) else places_inside(frame, self._is_loop),
            )
            self._ask()

    def _ask(self) -> None:
        """A source that the probe has no name for: `timeout_add` would be seen as the program's."""
        if self._watch.wants_look():
            source = self._glib.timeout_source_new(self._watch.look_ms)
            source.set_callback(lambda *_: self._contain(self._look))
            source.attach(None)

    def _look(self) -> None:
        if self._watch.look(self._harm, codes_inside(sys._getframe(), self._is_loop)):
            self._ask()

    def _is_loop(self, frame: FrameType) -> bool:
        return (frame.f_code.co_filename, frame.f_code.co_name) in self._loops

    def _harm(self, state: LeftOn) -> Harm | None:
        widget = state.what()
        return None if widget is None else self._asks[state.blocked_by](widget)

    def _is_sensitivity_missed(self, widget: Any) -> Harm | None:
        """Only where controls are in it, and nothing in any window of the application takes input."""
        if self._widget.get_sensitive(widget):
            return None
        is_missed = (
            self._is_seen(widget)
            and any(one is not widget and self._is_control(one) for one in self._inside(widget))
            and not any(map(self._takes_input, filter(self._is_seen, self._tops())))
        )
        return self._named(widget, _MINUTE) if is_missed else HARMLESS

    def _is_grab_missed(self, widget: Any) -> Harm | None:
        if not self._widget.has_grab(widget):
            return None
        return self._named(widget) if self._is_taken_by(widget) else HARMLESS

    def _is_modal_missed(self, window: Any) -> Harm | None:
        if not self._window.get_modal(window) or not self._widget.get_visible(window):
            return None
        return self._named(window) if self._is_taken_by(window) else HARMLESS

    def _is_taken_by(self, widget: Any) -> bool:
        """Whether the input of a window that is seen goes to this widget, which is not."""
        if self._is_seen(widget):
            return False
        seen = [top for top in self._tops() if self._is_seen(top)]
        if self._is_3:
            return any(self._window.get_group(top).get_current_grab() is widget for top in seen)
        # GTK 4 does not say who has the grab: a modal window that is seen may have taken it over.
        group = self._window.get_group(widget)
        near = [top for top in seen if self._window.get_group(top) is group]
        return bool(near) and not any(map(self._window.get_modal, near))

    def _tops(self) -> list[Any]:
        return [top for top in self._window.list_toplevels() if isinstance(top, self._window)]

    def _is_seen(self, widget: Any) -> bool:
        """It is on the screen, as far as its window system says."""
        if not self._widget.get_mapped(widget):
            return False
        gdk = sys.modules["gi.repository.Gdk"]
        if self._is_3:
            window = self._widget.get_toplevel(widget).get_window()
            iconified = gdk.WindowState.ICONIFIED
            return window is not None and window.is_viewable() and not window.get_state() & iconified
        root = self._widget.get_root(widget)
        surface = None if root is None else root.get_surface()
        minimized = gdk.ToplevelState.MINIMIZED
        return surface is not None and surface.get_mapped() and not surface.get_state() & minimized

    def _takes_input(self, window: Any) -> bool:
        """Whether anything in it may: what is drawn by the program may, too."""
        for count, widget in enumerate(self._inside(window, self._widget.is_sensitive)):
            if count == _WIDGETS_MAX or self._is_control(widget):
                return True
            if not isinstance(widget, self._holders) and not self._children(widget):
                return True
        return False

    def _is_control(self, widget: Any) -> bool:
        can_focus = self._widget.get_can_focus if self._is_3 else self._widget.get_focusable
        is_item = self._is_3 and isinstance(widget, (self._gtk.MenuItem, self._gtk.EventBox))
        return is_item or bool(can_focus(widget))

    def _inside(self, widget: Any, counts: Callable[[Any], bool] = lambda _: True) -> Iterator[Any]:
        """The widget, and those in it, of what is there to be seen and counts."""
        waiting = [widget]
        while waiting:
            one = waiting.pop()
            if self._widget.get_mapped(one) and not isinstance(one, self._show_only) and counts(one):
                yield one
                waiting += self._children(one)

    def _children(self, widget: Any) -> list[Any]:
        """Also those that GTK makes itself, but for the window's own buttons of GTK 3."""
        found: list[Any] = []
        if not self._is_3:
            child = self._widget.get_first_child(widget)
            while child is not None:
                found.append(child)
                child = self._widget.get_next_sibling(child)
        elif isinstance(widget, self._gtk.HeaderBar):
            found += widget.get_children()
        elif isinstance(widget, self._gtk.Container):
            self._gtk.Container.forall(widget, found.append)
        return found

    def _named(self, widget: Any, patience: int = 1) -> Harm:
        """`Box content`: its class, and its title, or its name where the program gave it one."""
        is_window = isinstance(widget, self._window)
        own = self._window.get_title(widget) if is_window else self._widget.get_name(widget)
        given = "" if own is None or own == widget.__gtype__.name else own
        return Harm(f"{type(widget).__name__} {given}".strip(), patience)
