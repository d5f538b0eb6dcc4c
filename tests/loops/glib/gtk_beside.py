"""A window, and a loop on another thread that turns before the window's does: gtk_beside.py STORE VERSION.
Tells which threads asked GTK for its windows."""

from __future__ import annotations

import json
import sys
import threading
import time

import loopcanary

loopcanary.install(store=sys.argv[1], console="off", engine="native")

import gi  # noqa: E402 - watched from its import on

gi.require_version("Gtk", sys.argv[2])
from gi.repository import GLib, Gtk  # noqa: E402

list_toplevels = Gtk.Window.list_toplevels
asked = []


def recording():
    asked.append(threading.current_thread().name)
    return list_toplevels()


class Beside:
    """The other thread's loop: turns each millisecond."""

    def __init__(self):
        self.turns = 0

    def run(self):
        context = GLib.MainContext.new()
        source = GLib.timeout_source_new(1)
        source.set_callback(self.turn)
        source.attach(context)
        GLib.MainLoop.new(context, False).run()

    def turn(self, *_):
        self.turns += 1
        return True

    def wait(self):
        until = self.turns + 10
        while self.turns < until:
            time.sleep(0.001)


Gtk.Window.list_toplevels = staticmethod(recording)
beside = Beside()
threading.Thread(target=beside.run, name="beside", daemon=True).start()
window = Gtk.Window(title="Orders")
(window.show_all if sys.argv[2] == "3.0" else window.present)()
beside.wait()
loop = GLib.MainLoop()
GLib.timeout_add(50, loop.quit)
loop.run()
loopcanary.uninstall()
sys.stdout.write(json.dumps(sorted(set(asked))))
