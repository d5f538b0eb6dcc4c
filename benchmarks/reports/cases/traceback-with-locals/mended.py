"""A catalogue of map layers: an edit that fails is written to the log with its plain traceback."""

from __future__ import annotations

import asyncio
import datetime
import io
import json
import time

import structlog
import uvicorn
from aiohttp import ClientSession
from fastapi import FastAPI, Request
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import JSONResponse, Response

LOG_FILE = io.StringIO()

structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ],
    logger_factory=structlog.PrintLoggerFactory(LOG_FILE),
)
log = structlog.get_logger()


class Record:
    """A row of the catalogue, which shows all its columns."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.revised = datetime.date(2026, 8, 14)
        self.outline = [(round(9 + step * 0.00071, 5), round(48 + step * 0.00037, 5)) for step in range(1600)]

    def __repr__(self) -> str:
        return f"<Record {self.number} revised={self.revised} outline={self.outline}>"


class Audit:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, record: Record, changes: dict[str, object]) -> None:
        self.lines.append(json.dumps({"record": record.number, "changes": changes}))


class RequestLog(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next) -> Response:
        try:
            return await call_next(request)
        except Exception:
            log.exception("request_failed", path=request.url.path)
            return JSONResponse({"detail": "internal error"}, status_code=500)


app = FastAPI()
app.add_middleware(RequestLog)
catalogue = {number: Record(number) for number in range(3)}
audit = Audit()


@app.get("/layers/{number}")
async def show_layer(number: int) -> dict[str, int]:
    return {"number": number, "points": len(catalogue[number].outline)}


@app.patch("/layers/{number}")
async def edit_layer(number: int) -> dict[str, int]:
    record = catalogue[number]
    changes = {"revised": record.revised}
    audit.note(record, changes)
    return {"number": number}


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/layers/"
    late: list[float] = []
    async with ClientSession() as visitor:
        async with visitor.get(address + "0") as answer:
            await answer.read()
        beats = asyncio.create_task(heartbeat(late))
        for turn in range(10):
            async with visitor.get(address + "1") as answer:
                print(answer.status, await answer.text())
            if turn % 4 == 2:
                async with visitor.patch(address + "1") as answer:
                    print(answer.status, await answer.text())
            await asyncio.sleep(0.2)
        beats.cancel()
    server.should_exit = True
    await serving
    print(f"{len(LOG_FILE.getvalue())} characters logged, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
