"""An editor of mods: after loading all trees of a mod, the panel at the side lists them."""

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


class TreesPanel(ttk.Frame):
    """The list of the loaded trees, in a box that scrolls."""

    def __init__(self, parent: tk.Misc) -> None:
        super().__init__(parent)
        self.trees: list[Tree] = []
        self.canvas = tk.Canvas(self, width=420, height=300)
        self.bar = ttk.Scrollbar(self, command=self.canvas.yview)
        self.canvas.configure(yscrollcommand=self.bar.set)
        self.canvas.pack(side="left", fill="both", expand=True)
        self.bar.pack(side="right", fill="y")
        self.rows = ttk.Frame(self.canvas)
        self.canvas.create_window(0, 0, window=self.rows, anchor="nw")

    def set_trees(self, trees: list[Tree]) -> None:
        self.trees = trees
        for child in self.rows.winfo_children():
            child.destroy()
        for tree in trees:
            self.add_row(tree)
        self.rows.update_idletasks()
        self.canvas.configure(scrollregion=self.canvas.bbox("all"))

    def add_row(self, tree: Tree) -> None:
        row = ttk.Frame(self.rows)
        ttk.Label(row, text=tree.kind[0].upper(), width=3).pack(side="left")
        ttk.Label(row, text=tree.name, width=20).pack(side="left")
        ttk.Label(row, text=f"{tree.focuses} focuses", width=12).pack(side="left")
        ttk.Button(row, text="Save", width=6, command=lambda: self.save(tree)).pack(side="left")
        ttk.Button(row, text="X", width=3, command=lambda: self.close(tree)).pack(side="left")
        row.pack(fill="x")

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
