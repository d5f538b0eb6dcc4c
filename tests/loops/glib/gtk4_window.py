"""Windows of GTK 4: gtk4_window.py STORE. One block in each of the ways that its handlers are called, a modal
window that stays, a loop inside a handler."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import loopcanary

loopcanary.install(store=sys.argv[1], console="off", engine="native")

import gi  # noqa: E402 - watched from its import on

gi.require_version("Gtk", "4.0")
from gi.repository import Gio, GLib, Gtk  # noqa: E402
from pointer import Pointer  # noqa: E402 - of this folder

sys.path.insert(0, str(Path(__file__).parents[2] / "program" / "programs"))
from blocking import block, slept  # noqa: E402

STAYS_MS = 1_100


class Orders(Gtk.Application):
    """Each step begins the next one."""

    def do_activate(self):
        self.window = Gtk.ApplicationWindow(application=self, title="Orders")
        self.window.set_default_size(400, 300)
        button = Gtk.Button(label="Buy")
        button.connect("clicked", self.on_clicked)
        self.window.set_child(button)
        self.window.present()
        self.pointer = Pointer()
        # Until the window is there to be clicked: some systems need a while.
        GLib.timeout_add(100, self.press)
        self.is_clicked = False

    def press(self):
        self.pointer.move(200, 150)
        self.pointer.click()
        return not self.is_clicked

    def on_clicked(self, *_):
        if self.is_clicked:
            return
        self.is_clicked = True
        block("on_clicked")
        self.dialog = Gtk.MessageDialog(transient_for=self.window, modal=True, title="Sure", text="Buy it?")
        self.dialog.connect("response", self.on_response)
        self.dialog.present()
        GLib.timeout_add(STAYS_MS, self.answer)

    def answer(self):
        if self.dialog.is_active():
            GLib.idle_add(self.respond)  # after the events about it
        else:
            GLib.timeout_add(50, self.answer)

    def respond(self):
        GLib.timeout_add(1, self.dialog.response, Gtk.ResponseType.OK)  # a function of GTK's, as it is

    def on_response(self, dialog, *_):
        block("on_response")
        dialog.destroy()
        GLib.idle_add(self.wait_for_it)

    def wait_for_it(self):
        inner = GLib.MainLoop()
        GLib.timeout_add(STAYS_MS, inner.quit)
        inner.run()
        block("wait_for_it")
        GLib.timeout_add(50, self.quit)


Orders(application_id="org.example.Orders", flags=Gio.ApplicationFlags.NON_UNIQUE).run([])
# What the program does now is no loop's.
time.sleep(0.4)
loopcanary.uninstall()
sys.stdout.write(json.dumps(slept))
