"""Control: a modal message box is open for five seconds."""

from __future__ import annotations

from tkinter import messagebox

from zoo.loops import host
from zoo.stage import run

EXPECT = {"control": True, "loops": ["tk"]}
ROOT = host().root


async def handler():
    # Its buttons set this variable; its loop is written in Tcl.
    ROOT.after(5000, lambda: ROOT.tk.call("set", "::tk::Priv(button)", "ok"))
    assert messagebox.showinfo("zoo", "Shall it stay for longer than a hang?") == "ok"


if __name__ == "__main__":
    run(handler)
