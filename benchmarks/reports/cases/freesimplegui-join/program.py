"""A window waits for its worker to end, and the worker waits for the window to take its event."""

from __future__ import annotations

import atexit
import os
import subprocess
import threading
import time

if "DISPLAY" not in os.environ:
    server = subprocess.Popen(["Xvfb", "-displayfd", "1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    os.environ["DISPLAY"] = ":" + server.stdout.readline().decode().strip()
    atexit.register(server.terminate)

import FreeSimpleGUI as sg


class Scanner(threading.Thread):
    def __init__(self, window: sg.Window) -> None:
        super().__init__(daemon=True)
        self.window = window
        self.running = True

    def run(self) -> None:
        number = 0
        while self.running:
            time.sleep(0.3)
            number += 1
            self.window.write_event_value("-SCANNED-", number)
        self.window.write_event_value("-ENDED-", number)


def main() -> None:
    window = sg.Window("scan", [[sg.Text("...", key="-OUT-")], [sg.Button("Stop")]], finalize=True)
    late: list[float] = []

    def heartbeat(due: float) -> None:
        late.append(time.perf_counter() - due)
        window.TKroot.after(10, heartbeat, time.perf_counter() + 0.01)

    window.TKroot.after(10, heartbeat, time.perf_counter() + 0.01)
    scanner = Scanner(window)
    scanner.start()
    window.TKroot.after(1000, window["Stop"].click)
    while True:
        event, values = window.read(timeout=5000)
        if event == "-SCANNED-":
            window["-OUT-"].update(values[event])
        elif event == "Stop":
            scanner.running = False
            scanner.join(timeout=3)
        elif event == "-ENDED-":
            window.TKroot.after(500, window.write_event_value, "-CLOSE-", None)
        elif event in {"-CLOSE-", sg.WIN_CLOSED, sg.TIMEOUT_EVENT}:
            break
    window.close()
    print(f"{event}, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
