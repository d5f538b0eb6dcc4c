from __future__ import annotations

import gc
import json
from typing import Any

products: dict[str, dict[str, Any]] = {}


def replace(body: bytes) -> int:
    """Takes a supplier's whole catalog in place of the one that was."""
    fresh = json.loads(body)
    products.clear()
    products.update((product["sku"], product) for product in fresh)
    give_memory_back()
    return len(products)


def give_memory_back() -> None:
    gc.collect()
