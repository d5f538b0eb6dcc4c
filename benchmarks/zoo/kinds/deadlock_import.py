"""A handler imports what a thread imports, which needs the lock of the handler; killed in the deadlock."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from zoo.stage import measured, run

EXPECT = {
    "cause": ["import"],
    "thread": ["preloader"],
    "killed": True,
    "advice": ["same order"],
}
models = threading.Lock()
begun = threading.Event()


def preload():
    import deadlock_import  # noqa: F401


def predict():
    import deadlock_import  # noqa: F401  # <- culprit


async def handler():
    with measured(), models:
        threading.Thread(target=preload, name="preloader", daemon=True).start()
        begun.wait()
        predict()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    run(handler)
else:
    sys.modules["__main__"].begun.set()
    with sys.modules["__main__"].models:  # <- holder
        pass
