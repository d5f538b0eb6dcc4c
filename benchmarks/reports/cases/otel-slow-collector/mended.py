"""A FastAPI service traces every order and sends the spans to a Zipkin collector in batches."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
import time

import httpx
import uvicorn
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.exporter.zipkin.json import ZipkinExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


class BusyCollector(http.server.BaseHTTPRequestHandler):
    """Stands for a collector that has too much to do: it takes every span, but late."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        threading.Event().wait(0.7)
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        pass


def start_collector() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BusyCollector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/api/v2/spans"


def set_up_tracing(endpoint: str) -> TracerProvider:
    provider = TracerProvider(resource=Resource.create({"service.name": "orders"}))
    exporter = ZipkinExporter(endpoint=endpoint, timeout=10)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


app = FastAPI()
tracer = trace.get_tracer("orders")


@app.get("/orders/{number}")
async def read_order(number: int) -> dict[str, object]:
    with tracer.start_as_current_span("read order") as span:
        span.set_attribute("order.number", number)
        await asyncio.sleep(0.02)
        return {"number": number, "state": "sent"}


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    provider = set_up_tracing(start_collector())
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=10
    ) as client:
        await asyncio.sleep(0.3)
        late: list[float] = []
        beats = asyncio.create_task(heartbeat(late))
        for number in range(4):
            answer = await client.get(f"/orders/{number}")
            print(answer.json())
            await asyncio.sleep(0.3)
        beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")
    server.should_exit = True
    await serving
    await asyncio.to_thread(provider.shutdown)


if __name__ == "__main__":
    asyncio.run(main())
