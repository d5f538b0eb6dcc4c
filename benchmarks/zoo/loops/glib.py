"""A main loop of GLib's, by PyGObject."""

from __future__ import annotations

from collections.abc import Callable

from gi.repository import GLib

from zoo.loops.steps import CallbackHost


class GLibHost(CallbackHost):
    """Programs are called by timeouts."""

    def __init__(self) -> None:
        self._loop = GLib.MainLoop()

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """See CallbackHost."""

        def once() -> bool:
            function()
            return bool(GLib.SOURCE_REMOVE)

        GLib.timeout_add(round(seconds * 1e3), once)

    def loop(self) -> None:
        """See CallbackHost."""
        self._loop.run()

    def leave(self) -> None:
        """See CallbackHost."""
        self._loop.quit()


HOST = GLibHost()
