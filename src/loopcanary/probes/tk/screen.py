"""The screen's refresh rate, which Tk does not know: the X server is asked by its RandR extension, if the
library for that (libXrandr) is installed.
"""

from __future__ import annotations

from typing import Any

_EXTENSION = b"RANDR"


def refresh_rate_hz(screen: str) -> float | None:
    """Of the screen that X calls so, such as `:0.0`; None: it cannot be known.

    Only of a server on this host: the question takes some round trips on a connection of its own. It is one
    request without a monitor's number: of a monitor that is gone Xlib makes an error that ends the program.
    """
    if not screen.removeprefix("unix").startswith(":"):
        return None
    try:
        import ctypes  # only where Tk draws

        x11, randr = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXrandr.so.2")
    except (ImportError, OSError):
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_ulong
    x11.XOpenDisplay.restype, x11.XOpenDisplay.argtypes = pointer, (ctypes.c_char_p,)
    x11.XCloseDisplay.argtypes = (pointer,)
    x11.XQueryExtension.argtypes = (pointer, ctypes.c_char_p, pointer, pointer, pointer)
    x11.XDefaultRootWindow.restype, x11.XDefaultRootWindow.argtypes = number, (pointer,)
    randr.XRRGetScreenInfo.restype, randr.XRRGetScreenInfo.argtypes = pointer, (pointer, number)
    randr.XRRConfigCurrentRate.restype, randr.XRRConfigCurrentRate.argtypes = ctypes.c_short, (pointer,)
    randr.XRRFreeScreenConfigInfo.argtypes = (pointer,)
    display = x11.XOpenDisplay(screen.encode())
    if not display:
        return None
    codes = (ctypes.c_int * 3)()
    where = [ctypes.byref(codes, at * ctypes.sizeof(ctypes.c_int)) for at in range(3)]
    try:
        # A server without the extension has libXrandr follow a null pointer.
        if not x11.XQueryExtension(display, _EXTENSION, *where):
            return None
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
