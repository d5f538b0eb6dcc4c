from __future__ import annotations

import threading
import time


class Inventory:
    """How much there is of each product, kept fresh by a thread that holds the lock for too long."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stock: dict[str, int] = {}
        self._closing = threading.Event()
        self._refresher = threading.Thread(
            target=self._refresh_regularly, name="inventory-refresh", daemon=True
        )
        self._refresher.start()

    def stock_of(self, sku: str) -> int:
        with self._lock:
            return self._stock.get(sku, 0)

    def close(self) -> None:
        self._closing.set()
        self._refresher.join()

    def _refresh_regularly(self) -> None:
        while not self._closing.wait(0.3):
            self._refresh()

    def _refresh(self) -> None:
        with self._lock:
            time.sleep(0.4)  # stands for a slow answer of the warehouse
            self._stock = {f"sku-{number}": number for number in range(1000)}
