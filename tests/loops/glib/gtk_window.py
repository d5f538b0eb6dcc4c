"""A window of GTK 3, which is clicked, a modal dialog and an application: gtk_window.py STORE. One block in
each."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import loopcanary

loopcanary.install(store=sys.argv[1], console="off", engine="native")

import gi  # noqa: E402 - watched from its import on

gi.require_version("Gtk", "3.0")
from gi.repository import Gio, GLib, Gtk  # noqa: E402
from pointer import Pointer  # noqa: E402 - of this folder

sys.path.insert(0, str(Path(__file__).parents[2] / "program" / "programs"))
from blocking import block, slept  # noqa: E402


def on_clicked(button):
    clicks.append(1)
    if len(clicks) == 1:
        block("on_clicked")
        GLib.timeout_add(200, with_dialog)


def press():
    # Until the window is there to be clicked: some systems need a while.
    pointer.move(200, 150)
    pointer.click()
    return not clicks


def with_dialog():
    dialog = Gtk.MessageDialog(transient_for=window, text="Shall it stay for longer than a hang?")
    GLib.timeout_add(1_500, dialog.response, Gtk.ResponseType.OK)
    dialog.run()
    dialog.destroy()
    block("with_dialog")
    GLib.idle_add(Gtk.main_quit)


class Application(Gtk.Application):
    def do_activate(self):
        Gtk.ApplicationWindow(application=self).show_all()
        GLib.timeout_add(50, self.slow)

    def slow(self):
        block("slow")
        GLib.timeout_add(50, self.quit)


window = Gtk.Window(title="window")
button = Gtk.Button(label="press")
button.connect("clicked", on_clicked)
window.add(button)
window.set_default_size(400, 300)
window.show_all()
clicks, pointer = [], Pointer()
GLib.timeout_add(100, press)
Gtk.main()
Application(application_id="org.example.Window", flags=Gio.ApplicationFlags.NON_UNIQUE).run([])
# What the program does now is no loop's.
time.sleep(0.4)
loopcanary.uninstall()
sys.stdout.write(json.dumps(slept))
