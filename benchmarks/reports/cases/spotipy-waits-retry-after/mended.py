"""A chat bot tells what is played: when Spotify says that it was asked too often, it asks again at the next turn."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import spotipy
from spotipy.exceptions import SpotifyException


class Spotify(BaseHTTPRequestHandler):
    """Stands in for the API: every second request is one too many."""

    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self) -> None:
        Spotify.asked += 1
        playing = Spotify.asked % 2 == 0
        body = json.dumps({"is_playing": True, "item": {"name": f"song {Spotify.asked}"}} if playing else {}).encode()
        self.send_response(200 if playing else 429)
        if not playing:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def connect(port: int) -> spotipy.Spotify:
    spotify = spotipy.Spotify(auth="a-token", requests_timeout=5, retries=0)
    spotify.prefix = f"http://127.0.0.1:{port}/v1/"
    return spotify


async def tell_what_plays(spotify: spotipy.Spotify) -> None:
    for _ in range(4):
        try:
            playback = spotify.current_playback()
            print("now playing", playback["item"]["name"])
        except SpotifyException as error:
            print("Spotify says", error.http_status)
        await asyncio.sleep(1)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(port: int) -> None:
    late: list[float] = []
    spotify = connect(port)
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.3)
    await tell_what_plays(spotify)
    beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Spotify)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(main(server.server_port))
    server.shutdown()
