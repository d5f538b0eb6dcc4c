"""A gevent synchronizer sleeps, runs children and reads from slow servers with the standard library's calls."""

from gevent import monkey

monkey.patch_all()

import subprocess
import threading
import time
import urllib.request

import gevent
from gevent.pywsgi import WSGIServer


def slow_provider(_environ, start_response):
    time.sleep(1)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"42 messages"]


class FolderSync(threading.Thread):
    def __init__(self, name: str, port: int, lock: threading.Lock) -> None:
        super().__init__(name=name)
        self.port = port
        self.lock = lock

    def run(self) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{self.name}", timeout=30) as answer:
            found = answer.read().decode()
        with self.lock:
            subprocess.run(["sleep", "0.4"], check=True)
            time.sleep(0.3)
        print(f"{self.name}: {found}")


def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        time.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


def main() -> None:
    server = WSGIServer(("127.0.0.1", 0), slow_provider, log=None)
    server.start()
    late: list[float] = []
    beats = gevent.spawn(heartbeat, late)
    time.sleep(1)
    lock = threading.Lock()
    folders = [FolderSync(name, server.server_port, lock) for name in ("inbox", "sent", "drafts")]
    for folder in folders:
        folder.start()
    for folder in folders:
        folder.join()
    time.sleep(0.5)
    beats.kill()
    server.stop()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
