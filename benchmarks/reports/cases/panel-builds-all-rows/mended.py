"""An editor of mods: after loading all trees of a mod, the panel at the side lists them in few widgets."""

from __future__ import annotations

import atexit
import os
import subprocess
import time
import tkinter as tk
from dataclasses import dataclass
from tkinter import ttk

if "DISPLAY" not in os.environ:
    server = subprocess.Popen(["Xvfb", "-displayfd", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.environ["DISPLAY"] = ":" + server.stdout.readline().decode().strip()
    atexit.register(server.terminate)


@dataclass
class Tree:
    name: str
    kind: str
    focuses: int
    saved: bool = True


def load_all_trees() -> list[Tree]:
    return [Tree(f"tree_{number:03}", ("national", "shared", "joint")[number % 3], 29) for number in range(400)]


class TreeRow(ttk.Frame):
    """A row of the pool: it shows now this tree and now that one."""

    def __init__(self, panel: TreesPanel) -> None:
        super().__init__(panel)
        self.tree: Tree | None = None
        self.kind = ttk.Label(self, width=3)
        self.name = ttk.Label(self, width=20)
        self.info = ttk.Label(self, width=12)
        save = ttk.Button(self, text="Save", width=6, command=lambda: panel.save(self.tree))
        close = ttk.Button(self, text="X", width=3, command=lambda: panel.close(self.tree))
        for widget in (self.kind, self.name, self.info, save, close):
            widget.pack(side="left")

    def show(self, tree: Tree) -> None:
        self.tree = tree
        self.kind["text"] = tree.kind[0].upper()
        self.name["text"] = tree.name
        self.info["text"] = f"{tree.focuses} focuses"


class TreesPanel(ttk.Frame):
    """The list of the loaded trees: only the rows that are in sight have widgets."""

    def __init__(self, parent: tk.Misc) -> None:
        super().__init__(parent)
        self.trees: list[Tree] = []
        self.first = 0
        self.bar = ttk.Scrollbar(self, command=self.scroll)
        self.bar.pack(side="right", fill="y")
        self.pool = [TreeRow(self) for _ in range(8)]

    def set_trees(self, trees: list[Tree]) -> None:
        self.trees = trees
        self.show_from(0)

    def show_from(self, first: int) -> None:
        self.first = max(0, min(first, len(self.trees) - len(self.pool)))
        for offset, row in enumerate(self.pool):
            row.pack_forget()
            if self.first + offset < len(self.trees):
                row.show(self.trees[self.first + offset])
                row.pack(fill="x")
        whole = max(1, len(self.trees))
        self.bar.set(self.first / whole, (self.first + len(self.pool)) / whole)

    def scroll(self, how: str, amount: str, _unit: str = "") -> None:
        self.show_from(int(float(amount) * len(self.trees)) if how == "moveto" else self.first + int(amount))

    def save(self, tree: Tree) -> None:
        tree.saved = True

    def close(self, tree: Tree) -> None:
        self.set_trees([other for other in self.trees if other is not tree])


class Editor(tk.Tk):
    def __init__(self) -> None:
        super().__init__()
        self.title("Content maker")
        self.late: list[float] = []
        self.panel = TreesPanel(self)
        self.panel.pack(side="left", fill="y")
        ttk.Progressbar(self, mode="determinate").pack(fill="x")
        self.after(1500, self.start_beating)
        self.after(2500, self.load_all_done)
        self.after(6500, self.destroy)

    def start_beating(self) -> None:
        self.last = time.perf_counter()
        self.after(10, self.beat)

    def beat(self) -> None:
        now = time.perf_counter()
        self.late.append(now - self.last - 0.01)
        self.last = now
        self.after(10, self.beat)

    def load_all_done(self) -> None:
        trees = load_all_trees()
        self.title(f"Content maker: {len(trees)} trees")
        self.panel.set_trees(trees)


def main() -> None:
    editor = Editor()
    editor.mainloop()
    print(f"{len(editor.late)} ticks, worst tick {max(editor.late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
