"""A small shell window shows what its jobs print; one of them prints a large dict, which is broken into lines."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
import tkinter as tk


class Shell(tk.Frame):
    def __init__(self, root: tk.Tk) -> None:
        super().__init__(root)
        self.output: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.text = tk.Text(self, width=80, height=24, wrap="char", font="TkFixedFont")
        self.text.pack(fill="both", expand=True)
        self.text.tag_configure("out", foreground="blue")
        self.after(50, self.poll)

    def poll(self) -> None:
        try:
            while True:
                self.show(self.output.get_nowait())
        except queue.Empty:
            pass
        self.after(50, self.poll)

    def show(self, output: str) -> None:
        lines = [line[at : at + 80] for line in output.split("\n") for at in range(0, len(line) or 1, 80)]
        self.text.insert("end", "\n".join(lines), "out")
        self.text.see("end")


def job(shell: Shell) -> None:
    shell.output.put(">>> counts\n")
    counts = {number: number * number % 9973 for number in range(14_000)}
    time.sleep(1)
    shell.output.put(f"{counts}\n>>> ")


def start_display() -> subprocess.Popen[bytes] | None:
    if os.environ.get("DISPLAY"):
        return None
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as answer:
        os.environ["DISPLAY"] = ":" + answer.readline().strip()
    return server


def main() -> None:
    root = tk.Tk()
    shell = Shell(root)
    shell.pack(fill="both", expand=True)
    root.update()
    late: list[float] = []
    last = time.perf_counter()

    def beat() -> None:
        nonlocal last
        now = time.perf_counter()
        late.append(now - last - 0.01)
        last = now
        root.after(10, beat)

    root.after(10, beat)
    threading.Thread(target=job, args=[shell], daemon=True).start()
    root.after(5000, root.quit)
    root.mainloop()
    lines = int(shell.text.index("end").partition(".")[0]) - 1
    root.destroy()
    print(f"{lines} lines, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    server = start_display()
    try:
        main()
    finally:
        if server:
            server.terminate()
