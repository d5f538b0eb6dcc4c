"""A main loop in which nothing blocks: quiet_loop.py STORE. Prints how often its animation ran, and what was
seen."""

from __future__ import annotations

import json
import sys
import time

import loopcanary

canary = loopcanary.install(store=sys.argv[1], console="off", engine="native")

from gi.repository import GLib  # noqa: E402 - watched from its import on

PAUSE_MS = 1_100  # longer than a hang
PAUSES = 2


def idle():
    GLib.timeout_add(PAUSE_MS, inner_loop)


def inner_loop():
    inner = GLib.MainLoop()
    GLib.timeout_add(PAUSE_MS, inner.quit)
    inner.run()
    GLib.idle_add(progress)


def progress():
    context = GLib.MainContext.default()
    for _ in range(100):
        time.sleep(0.005)
        while context.iteration(may_block=False):
            pass
    GLib.timeout_add(16, animate)


def animate():
    frames[0] += 1
    if frames[0] >= 60:
        loop.quit()
        return GLib.SOURCE_REMOVE
    return GLib.SOURCE_CONTINUE


frames = [0]
loop = GLib.MainLoop()
idle()
loop.run()
# What the program does now is not the loop's.
time.sleep(0.4)
(seen,) = canary.loops()
loopcanary.uninstall()
busy = {"kind": seen.kind, "busy_ms": seen.busy_ns / 1e6, "window_ms": seen.window_ns / 1e6}
sys.stdout.write(json.dumps({"frames": frames[0], "paused_ms": PAUSES * PAUSE_MS, "loop": busy}))
