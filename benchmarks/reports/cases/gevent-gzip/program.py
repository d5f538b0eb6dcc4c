"""A gevent service archives the day's records in a "thread", and no other greenlet runs meanwhile."""

from gevent import monkey

monkey.patch_all()

import base64
import gzip
import random
import threading
import time
import urllib.request

import gevent
from gevent.pywsgi import WSGIServer

RECORDS = base64.b64encode(random.Random(3).randbytes(9_000_000))


class Archive:
    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def pack(self, day: str) -> None:
        packed = gzip.compress(RECORDS)
        self.sizes[day] = len(packed)

    def pack_in_background(self, day: str) -> threading.Thread:
        thread = threading.Thread(target=self.pack, args=(day,))
        thread.start()
        return thread


def status(_environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ok"]


def ask(port: int) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
        answer.read()
    return time.perf_counter() - began


def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        gevent.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


def main() -> None:
    server = WSGIServer(("127.0.0.1", 0), status, log=None)
    server.start()
    late: list[float] = []
    beats = gevent.spawn(heartbeat, late)
    gevent.sleep(1)
    archive = Archive()
    asking = gevent.spawn(ask, server.server_port)
    packing = archive.pack_in_background("monday")
    packing.join()
    took = asking.get()
    gevent.sleep(1)
    beats.kill()
    server.stop()
    print(f"{archive.sizes}, status after {took * 1000:.0f} ms, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
