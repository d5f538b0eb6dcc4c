"""Bills, kept in ways that take long."""

from __future__ import annotations

import json
import threading
import time

BILLS = 150_000


class Ledger:
    """What the window shows."""

    def __init__(self) -> None:
        names = ("Ada", "Grace", "Edsger", "Barbara", "Donald")
        rows = [{"who": names[i % 5], "pence": i * 7 % 10_000, "paid": i % 3 == 0} for i in range(BILLS)]
        self._file = json.dumps(rows)
        self._rows = rows
        self._lock = threading.Lock()

    def load(self) -> list[dict[str, object]]:
        return json.loads(self._file)[:200]

    def total(self) -> float:
        total = 0
        for _ in range(8):
            for row in self._rows:
                if not row["paid"]:
                    total += row["pence"]
        return total / 800

    def save_in_the_background(self) -> None:
        saving = threading.Event()

        def save() -> None:
            with self._lock:
                saving.set()
                time.sleep(0.5)  # a slow disk

        threading.Thread(target=save, name="saver").start()
        saving.wait()

    def sync(self) -> None:
        with self._lock:
            self._rows.reverse()

    def export_one_percent(self) -> None:
        json.dumps(self._rows[: BILLS // 100])
