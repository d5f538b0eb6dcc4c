"""A handler imports a module that a thread is still importing: this file, under its own name."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from zoo.stage import measured, run

EXPECT = {"cause": ["import"], "thread": ["preloader"]}
begun = threading.Event()


def preload():
    import import_lock  # noqa: F401


def predict():
    import import_lock  # noqa: F401  # <- culprit


async def handler():
    with measured():
        threading.Thread(target=preload, name="preloader").start()
        begun.wait()
        predict()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    run(handler)
else:
    sys.modules["__main__"].begun.set()
    time.sleep(0.3)  # <- holder
