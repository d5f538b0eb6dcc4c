"""The pointer of an X server, moved and pressed as a user does it, by its XTEST extension (libXtst)."""

from __future__ import annotations

import ctypes


class Pointer:
    """On a connection of its own. OSError: the library is not there."""

    def __init__(self) -> None:
        self._x11, self._test = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
        self._x11.XOpenDisplay.restype = ctypes.c_void_p
        self._display = ctypes.c_void_p(self._x11.XOpenDisplay(None))

    def move(self, x: int, y: int) -> None:
        self._test.XTestFakeMotionEvent(self._display, -1, x, y, ctypes.c_ulong(0))
        self._x11.XFlush(self._display)

    def click(self) -> None:
        for is_press in (1, 0):
            self._test.XTestFakeButtonEvent(self._display, 1, is_press, ctypes.c_ulong(0))
        self._x11.XFlush(self._display)
