"""A dramatiq worker on threads, with messages from a broker in memory."""

from __future__ import annotations

import time

import dramatiq
from dramatiq.brokers.stub import StubBroker

broker = StubBroker()
dramatiq.set_broker(broker)


@dramatiq.actor
def render(page):
    time.sleep(0.8)  # render


@dramatiq.actor
def short():
    time.sleep(0.15)


worker = dramatiq.Worker(broker, worker_threads=2)
worker.start()
short.send()
render.send(1)
render.send(2)
broker.join(render.queue_name)
worker.join()
worker.stop()
