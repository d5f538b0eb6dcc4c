from __future__ import annotations

import time


def price_of(sku: str) -> float:
    """Asks the price service, which wants a pause between two questions."""
    wait_for_rate_limit()
    return round(9.99 + len(sku), 2)


def wait_for_rate_limit() -> None:
    time.sleep(0.25)
