"""What the portable engine cannot see, in sentences for people. `loopcanary doctor` shows them."""

from __future__ import annotations

import sys

BLIND_SPOTS = (
    (
        "Watched are asyncio's loops and those with its interface (uvloop, Tornado), trio, Twisted's "
        "reactors, Tk, Qt while its application runs, pygame, requests and jobs on threads, and "
        "loopcanary.watch: not gevent or GLib (nor asyncio on it). Frames of pygame only, idle work of Tk, "
        "input of pygame and Tk, and requests of uvicorn, granian and hypercorn's HTTP/2."
    ),
    (
        "A C call that holds the GIL is seen only once it ends: then its length and its line are reported, "
        "but nothing while it lasts."
    ),
    (
        "What the kernel saw (system call, state of the thread, descriptor) is not recorded; causes rest "
        "on Python frames and CPU times."
    ),
    (
        "Of a stall in which the process is killed or ends by os._exit, only one of a second and more is "
        "left behind, as killed; none of a C call that holds the GIL."
    ),
    (
        "Single callbacks are not timed, but for those of trio, Twisted, Tk and pygame: a turn is, and its "
        "samples say which callback held most of it; many short callbacks are told apart only as well as "
        "samples can."
    ),
    "The thread that held the GIL is not named.",
    "A Python signal handler that runs while the loop waits is not timed, unless a timer became overdue.",
    (
        "In loops without a Python selector, such as uvloop's and Qt's, a timer measures how late the loop "
        "is: the first part of a stall, up to one sample delay, is not seen, and an idle loop is woken once "
        "per sample delay."
    ),
)
if not sys.platform.startswith("linux"):
    BLIND_SPOTS += (
        (
            "CPU times of single threads are not available on this platform: computing and waiting look "
            "alike, unless the stack moves."
        ),
    )
