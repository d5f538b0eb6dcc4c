"""A scraper under gevent, which asks several shops for prices with curl_cffi."""

from gevent import monkey

monkey.patch_all()

import subprocess
import sys
import time

import gevent
from curl_cffi import requests
from gevent.pool import Pool

SHOPS = """
import http.server, time

class Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.35)
        body = f"price of {self.path[1:]}: {len(self.path) * 3}.90".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


class Scraper:
    def __init__(self, port: int) -> None:
        self.port = port
        self.found: list[str] = []

    def scrape(self, article: str) -> None:
        with requests.Session(impersonate="chrome") as session:
            page = session.get(f"http://127.0.0.1:{self.port}/{article}", timeout=30)
        self.found.append(page.text)


def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        gevent.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


def main() -> None:
    shops = subprocess.Popen([sys.executable, "-c", SHOPS], stdout=subprocess.PIPE, text=True)
    scraper = Scraper(int(shops.stdout.readline()))
    late: list[float] = []
    beats = gevent.spawn(heartbeat, late)
    gevent.sleep(0.5)
    began = time.perf_counter()
    pool = Pool(5)
    for article in ("kettle", "lamp", "toaster", "radio", "blanket"):
        pool.spawn(scraper.scrape, article)
    pool.join()
    print(f"{len(scraper.found)} prices in {time.perf_counter() - began:.1f} s")
    gevent.sleep(0.5)
    beats.kill()
    shops.terminate()
    shops.wait()
    shops.stdout.close()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
