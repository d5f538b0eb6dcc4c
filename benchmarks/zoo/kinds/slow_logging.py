"""A logging handler sends each record to a slow service."""

from __future__ import annotations

import logging
import logging.handlers
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from zoo.stage import measured, run

EXPECT = {"cause": ["network-io"]}


class SlowCollector(BaseHTTPRequestHandler):
    def do_POST(self):
        time.sleep(0.3)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words):
        pass


def check_stock(log):
    log.warning("stock is low")  # <- culprit


async def handler():
    with measured():
        check_stock(LOG)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), SlowCollector) as SERVER:
        threading.Thread(target=SERVER.serve_forever, daemon=True).start()
        LOG = logging.getLogger("shop")
        LOG.propagate = False
        LOG.addHandler(logging.handlers.HTTPHandler(f"127.0.0.1:{SERVER.server_port}", "/", method="POST"))
        run(handler)
        SERVER.shutdown()
