"""A handler asks another service by urllib."""

from __future__ import annotations

import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"]}


class SlowService(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.3)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words):
        pass


def fetch_stock(url):
    urllib.request.urlopen(url).close()  # <- culprit


async def handler():
    with measured():
        fetch_stock(f"http://127.0.0.1:{SERVER.server_port}/")


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), SlowService) as SERVER:
        threading.Thread(target=SERVER.serve_forever, daemon=True).start()
        run(handler)
        SERVER.shutdown()
