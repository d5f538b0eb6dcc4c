"""A handler logs, and waits for the lock of a logging handler that writes for a thread."""

from __future__ import annotations

import logging
import threading
import time

from zoo.stage import measured, pause, run

EXPECT = {"cause": ["lock"], "thread": ["audit"], "loops": "all"}
writing = threading.Event()


class SlowFile(logging.Handler):
    def emit(self, record):
        if record.levelno == logging.WARNING:
            writing.set()
            time.sleep(0.3)  # <- holder


def audit(log):
    log.warning("the till is open")  # <- holder


def check_stock(log):
    log.error("stock is low")  # <- culprit


async def handler():
    threading.Thread(target=audit, args=[LOG], name="audit").start()
    while not writing.is_set():
        await pause(0.001)
    with measured():
        check_stock(LOG)


if __name__ == "__main__":
    LOG = logging.getLogger("shop")
    LOG.propagate = False
    LOG.addHandler(SlowFile())
    run(handler)
