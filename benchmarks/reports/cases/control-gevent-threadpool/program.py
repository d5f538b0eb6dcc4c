"""A little login service with gevent: the hashing of passwords does not cooperate."""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import time  # noqa: E402
import urllib.request  # noqa: E402

import gevent  # noqa: E402
from argon2 import PasswordHasher  # noqa: E402
from gevent.pywsgi import WSGIServer  # noqa: E402

HASHER = PasswordHasher(time_cost=4, memory_cost=65536, parallelism=1)
KNOWN = HASHER.hash("correct horse")


def check(password: str) -> bool:
    return HASHER.verify(KNOWN, password)


def login(environ: dict, start_response) -> list[bytes]:
    password = environ["wsgi.input"].read().decode()
    right = gevent.get_hub().threadpool.apply(check, (password,))
    start_response("200 OK" if right else "403 Forbidden", [("Content-Type", "text/plain")])
    return [b"welcome"]


def visit(address: str) -> str:
    with urllib.request.urlopen(address, data=b"correct horse") as answer:
        return answer.read().decode()


def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        gevent.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


def main() -> None:
    server = WSGIServer(("127.0.0.1", 0), login, log=None)
    server.start()
    late: list[float] = []
    beats = gevent.spawn(heartbeat, late)
    for _ in range(4):
        gevent.sleep(0.3)
        began = time.perf_counter()
        print(f"{visit(f'http://127.0.0.1:{server.server_port}/')} after {time.perf_counter() - began:.2f} s")
    beats.kill()
    server.stop()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
