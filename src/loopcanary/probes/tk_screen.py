"""The screen's refresh rate, which Tk does not tell: asked of the X server by its RandR extension, where the
library for it (libXrandr) is there.
"""

from __future__ import annotations

from typing import Any


def refresh_rate_hz(screen: str) -> float | None:
    """Of the screen that X calls so, such as `:0.0`; None: it cannot be known.

    Only of a server on this host: the question takes some round trips on a connection of its own. One request
    and no number of a monitor in it: a monitor that goes meanwhile would be an error, and Xlib ends programs
    for it.
    """
    if not screen.removeprefix("unix").startswith(":"):
        return None
    import ctypes  # only where Tk draws

    try:
        x11, randr = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXrandr.so.2")
    except OSError:
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_ulong
    x11.XOpenDisplay.restype, x11.XOpenDisplay.argtypes = pointer, (ctypes.c_char_p,)
    x11.XCloseDisplay.argtypes = (pointer,)
    x11.XDefaultRootWindow.restype, x11.XDefaultRootWindow.argtypes = number, (pointer,)
    randr.XRRGetScreenInfo.restype, randr.XRRGetScreenInfo.argtypes = pointer, (pointer, number)
    randr.XRRConfigCurrentRate.restype, randr.XRRConfigCurrentRate.argtypes = ctypes.c_short, (pointer,)
    randr.XRRFreeScreenConfigInfo.argtypes = (pointer,)
    display = x11.XOpenDisplay(screen.encode())
    if not display:
        return None
    try:
        return _current_rate(randr, display, x11.XDefaultRootWindow(display))
    finally:
        x11.XCloseDisplay(display)


def _current_rate(randr: Any, display: int, root: int) -> float | None:
    config = randr.XRRGetScreenInfo(display, root)
    if not config:
        return None
    rate = randr.XRRConfigCurrentRate(config)
    randr.XRRFreeScreenConfigInfo(config)
    return float(rate) if rate > 0 else None
