"""An RQ worker, with jobs from a Redis that is made up."""

from __future__ import annotations

import time

from fakeredis import FakeStrictRedis
from rq import Queue, SimpleWorker


def render(page):
    time.sleep(0.8)  # render


def short():
    time.sleep(0.15)


redis = FakeStrictRedis()
queue = Queue(connection=redis)
queue.enqueue("__main__.short")
queue.enqueue("__main__.render", 1)
SimpleWorker([queue], connection=redis).work(burst=True, logging_level="ERROR")
