"""A window for notes, that saves and searches as people write it first: while it does, nothing else happens.

    loopcanary run examples/tk_window/notes.py            a window to play with
    loopcanary run examples/tk_window/notes.py --alone    it uses itself for some seconds, and closes

Then: loopcanary report
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import time
import tkinter as tk
from pathlib import Path

LINES = 400
ALMOST_AN_ADDRESS = re.compile(r"([\w.]+)+@example\.org")
"""Tries all ways to divide a word that has no @ behind it."""


class Notes:
    """The window: a text, a search, and what is done with them."""

    def __init__(self, root: tk.Tk, folder: Path) -> None:
        self.root = root
        self.folder = folder
        root.title("Notes")
        self.text = tk.Text(root, width=60, height=16, name="text")
        self.text.pack()
        self.state = tk.StringVar(root, "ready")
        tk.Label(root, textvariable=self.state).pack()
        self.buttons = [
            tk.Button(root, text="Save", name="save", command=self.save),
            tk.Button(root, text="Check", name="check", command=self.check_spelling),
            tk.Button(root, text="Addresses", name="addresses", command=self.find_addresses),
            tk.Button(root, text="Lock", name="lock", command=self.ask_password),
        ]
        for button in self.buttons:
            button.pack(side="left")
        self.text.bind("<Control-s>", lambda _: self.save())
        root.after(100, self.autosave)

    def fill(self) -> None:
        """With something to work on."""
        for number in range(LINES):
            self.text.insert("end", f"{number}: buy more tea\n")
        self.text.insert("end", "write to " + "a" * 19 + "!\n")

    def save(self) -> None:
        """To a disk that sometimes takes its time."""
        path = self.folder / "notes.txt"
        path.write_text(self.text.get("1.0", "end"))
        self.upload(path)
        self.state.set("saved")

    def upload(self, path: Path) -> None:
        """There is no server: this is what a slow one is like."""
        time.sleep(0.35)
        self.state.set(f"sent {path.stat().st_size} bytes")

    def check_spelling(self) -> None:
        """By a program of its own, which is waited for."""
        subprocess.run([sys.executable, "-c", "import time; time.sleep(0.3)"], check=True)
        self.state.set("no mistakes")

    def find_addresses(self) -> None:
        """With an expression that looks harmless."""
        found = ALMOST_AN_ADDRESS.findall(self.text.get("end - 2 lines", "end"))
        self.state.set(f"{len(found)} addresses")

    def ask_password(self) -> None:
        """The dialog may stay for as long as it likes; what comes after it may not."""
        dialog = tk.Toplevel(self.root)
        tk.Button(dialog, text="OK", command=dialog.destroy).pack()
        dialog.after(1_500, dialog.destroy)
        self.root.wait_window(dialog)
        key = hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 600_000)
        self.state.set(f"locked with {key.hex()[:8]}")

    def autosave(self) -> None:
        """Short, and as often as it likes."""
        self.state.set(time.strftime("%H:%M:%S"))
        self.root.after(100, self.autosave)


def use(notes: Notes) -> None:
    """What a user would do."""
    for number, button in enumerate(notes.buttons):
        notes.root.after(500 + 1_000 * number, press, button)
    notes.root.after(1_000 * len(notes.buttons) + 3_000, notes.root.destroy)


def press(button: tk.Button) -> None:
    """With the mouse."""
    for sequence in ("<Enter>", "<ButtonPress-1>", "<ButtonRelease-1>"):
        button.event_generate(sequence, x=3, y=3, when="tail")


def main() -> None:
    """Opens the window."""
    root = tk.Tk()
    with tempfile.TemporaryDirectory() as folder:
        notes = Notes(root, Path(folder))
        notes.fill()
        if "--alone" in sys.argv[1:]:
            use(notes)
        root.mainloop()


if __name__ == "__main__":
    main()
