"""A window of Tk's."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable

from zoo.loops.steps import CallbackHost


class TkHost(CallbackHost):
    """Programs are called by `after`."""

    def __init__(self) -> None:
        self.root = tk.Tk()
        self.root.title("zoo")

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """See CallbackHost."""
        self.root.after(max(1, round(seconds * 1e3)), function)

    def loop(self) -> None:
        """See CallbackHost."""
        self.root.mainloop()
        self.root.destroy()

    def leave(self) -> None:
        """See CallbackHost."""
        self.root.quit()


HOST = TkHost()
