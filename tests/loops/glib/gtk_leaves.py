"""loopcanary goes while it looks at a window, before a source is called: gtk_leaves.py STORE VERSION."""

from __future__ import annotations

import json
import sys

import loopcanary

loopcanary.install(store=sys.argv[1], console="off", engine="native")

import gi  # noqa: E402 - watched from its import on

gi.require_version("Gtk", sys.argv[2])
from gi.repository import GLib, Gtk  # noqa: E402

list_toplevels = Gtk.Window.list_toplevels
windows, done = [], []


def leaving():
    loopcanary.uninstall()
    done.append("gone")
    return list_toplevels()


def open_window():
    Gtk.Window.list_toplevels = staticmethod(leaving)
    window = Gtk.Window(title="Orders")
    (window.show_all if sys.argv[2] == "3.0" else window.present)()
    windows.append(window)


def go_on():
    if done:
        done.append("goes on")
        loop.quit()
    return not done


loop = GLib.MainLoop()
# Called in the same turn as what GTK is told, without a wait in between.
for function in (open_window, go_on):
    GLib.idle_add(function, priority=GLib.PRIORITY_DEFAULT)
loop.run()
sys.stdout.write(json.dumps(done))
