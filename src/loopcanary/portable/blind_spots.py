"""What the portable engine cannot see, in sentences for people. `loopcanary doctor` shows them."""

from __future__ import annotations

import sys

BLIND_SPOTS = (
    (
        "Watched: asyncio's loops and those with its interface (uvloop, Tornado), trio, Twisted's reactors, "
        "Tk, Qt while its application runs, pygame, requests and jobs on threads, and loopcanary.watch. Not "
        "watched: gevent, GLib, and asyncio on GLib. Frames: pygame only. Idle work: Tk only. Input: pygame "
        "and Tk. Request latency: uvicorn, granian and hypercorn's HTTP/2."
    ),
    (
        "A C call that holds the GIL is seen only after it has ended: its length and line are reported "
        "then, and nothing while it lasts."
    ),
    (
        "The kernel's view (system call, state of the thread, descriptor) is not recorded; causes rest on "
        "Python frames and CPU times."
    ),
    (
        "Of a stall in which the process is killed or ends by os._exit, only one of a second and more is "
        "left behind, as killed; none of a C call that holds the GIL."
    ),
    (
        "Single callbacks are timed only in trio, Twisted, Tk and pygame. In other loops a whole turn is "
        "timed, and its samples show which callback took most of it, less well if there are many short ones."
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
