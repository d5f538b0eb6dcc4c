"""The handler of a button waits for a variable, and the window goes on all the same."""

from __future__ import annotations

import atexit
import os
import subprocess
import time

if "DISPLAY" not in os.environ:
    server = subprocess.Popen(["Xvfb", "-displayfd", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.environ["DISPLAY"] = ":" + server.stdout.readline().decode().strip()
    atexit.register(server.terminate)

import customtkinter


class Window(customtkinter.CTk):
    def __init__(self) -> None:
        super().__init__()
        self.answer = customtkinter.IntVar(self)
        self.ask = customtkinter.CTkButton(self, text="Ask", command=self.question)
        self.ask.pack()
        self.yes = customtkinter.CTkButton(self, text="Yes", command=lambda: self.answer.set(1))
        self.yes.pack()
        self.late: list[float] = []
        self.after(10, self.heartbeat, time.perf_counter() + 0.01)

    def heartbeat(self, due: float) -> None:
        self.late.append(time.perf_counter() - due)
        self.after(10, self.heartbeat, time.perf_counter() + 0.01)

    def question(self) -> None:
        began = time.monotonic()
        self.wait_variable(self.answer)
        print(f"answered after {time.monotonic() - began:.1f} s")
        self.after(500, self.quit)


if __name__ == "__main__":
    window = Window()
    window.update()
    window.late.clear()
    window.after(1000, window.ask.invoke)
    window.after(5000, window.yes.invoke)
    window.mainloop()
    print(f"worst tick {max(window.late) * 1000:.0f} ms")
