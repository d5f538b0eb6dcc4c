"""The kinds of loop on which programs play, one file each. README.md says how to add one.

This module imports none of them; `host()` imports the one that is asked for, in the program's process.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

LOOP = "ZOO_LOOP"
"""The environment's word for the loop to play on."""
Main = Callable[[], Coroutine[Any, Any, None]]


class Host(Protocol):
    """`HOST` of each module in this folder: a program's way to its loop. On the loop's thread."""

    def run(self, main: Main) -> None:
        """Runs the loop until main ends, and raises what it raises."""

    async def pause(self, seconds: float) -> None:
        """Lets the loop run for `seconds`."""

    async def call(self, program: Main) -> None:
        """The program as a piece of work of its own: a task, a greenlet, a callback; awaits its end."""

    def beside(self, main: Main) -> Callable[[], None]:
        """Begins main beside what runs; what is returned stops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What has to be known of a kind of loop before it runs."""

    title: str
    asks: str = ""
    """A program that imports the library and prints its version."""
    environment: dict[str, str] = field(default_factory=dict)
    screen: bool = False
    """It draws, on an X server."""


OFFSCREEN = {"QT_QPA_PLATFORM": "offscreen"}
HEADLESS = {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
OF_ASYNCIO = {
    "asyncio": Loop(title="asyncio"),
    "uvloop": Loop(title="uvloop", asks="import uvloop; print(uvloop.__version__)"),
}
OTHERS = {
    "trio": Loop(title="trio", asks="import trio; print(trio.__version__)"),
    "gevent": Loop(title="gevent", asks="import gevent; print(gevent.__version__)"),
    "pyside6": Loop(
        title="PySide6",
        asks="import PySide6.QtWidgets; print(PySide6.__version__)",
        environment=OFFSCREEN,
    ),
    "pyqt6": Loop(
        title="PyQt6",
        asks="import PyQt6.QtWidgets; print(PyQt6.QtCore.PYQT_VERSION_STR)",
        environment=OFFSCREEN,
    ),
    "tk": Loop(
        title="Tk", asks="import tkinter; print(tkinter.Tcl().call('info', 'patchlevel'))", screen=True
    ),
    "glib": Loop(title="GLib by PyGObject", asks="import gi.repository.GLib; print(gi.__version__)"),
    "pygame": Loop(
        title="pygame",
        asks="import pygame; print(pygame.__version__ + '-ce' * hasattr(pygame, 'IS_CE'))",
        environment=HEADLESS,
    ),
}
ALL = OF_ASYNCIO | OTHERS


def host() -> Host:
    """The host of the loop that the environment asks for, asyncio if for none."""
    found: Host = importlib.import_module(f"{__name__}.{os.environ.get(LOOP) or 'asyncio'}").HOST
    return found
