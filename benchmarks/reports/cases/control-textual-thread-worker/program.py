"""A weather app for the terminal: asks a slow service with requests, in a worker with a thread of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from textual import work
from textual.app import App, ComposeResult
from textual.widgets import Input, Static


class Weather(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.6)
        report = f"{self.path.strip('/')}: 7 degrees, rain".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(report)))
        self.end_headers()
        self.wfile.write(report)

    def log_message(self, *args: object) -> None:
        pass


class WeatherApp(App[None]):
    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.late: list[float] = []

    def compose(self) -> ComposeResult:
        yield Input(placeholder="Enter a city")
        yield Static("no city yet", id="weather")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.update_weather(event.value)

    @work(exclusive=True, thread=True)
    def update_weather(self, city: str) -> None:
        report = requests.get(self.address + city, timeout=5).text
        self.call_from_thread(self.query_one("#weather", Static).update, report)

    async def heartbeat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            self.late.append(time.perf_counter() - began - 0.01)


async def main(app: WeatherApp) -> None:
    async with app.run_test() as pilot:
        await asyncio.sleep(1)
        beats = asyncio.create_task(app.heartbeat())
        for city in ("oslo", "bern", "rome"):
            app.query_one(Input).value = city
            await pilot.press("enter")
            await asyncio.sleep(1)
            print(app.query_one("#weather", Static).render())
        beats.cancel()
    print(f"{len(app.late)} ticks, worst tick {max(app.late) * 1000:.0f} ms")


if __name__ == "__main__":
    service = ThreadingHTTPServer(("127.0.0.1", 0), Weather)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    asyncio.run(main(WeatherApp(f"http://127.0.0.1:{service.server_port}/")))
