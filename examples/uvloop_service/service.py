"""An order desk on uvloop: one line of JSON for each request, one for each answer.

    pip install uvloop
    loopcanary run examples/uvloop_service/service.py

plays a few seconds of it with clients of its own. Three kinds of request block the loop: a sign-in
(accounts.py), a large order, whose journal is made durable line by line (journal.py), and the day's report
(reports.py).
"""

from __future__ import annotations

import asyncio
import json

import accounts
import clients
import journal
import reports
import uvloop


class Desk(asyncio.Protocol):
    """One client's connection."""

    def connection_made(self, transport):
        self._transport = transport
        self._rest = b""
        self._tasks = set()

    def data_received(self, data):
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            task = asyncio.create_task(self._answer(request), name=request["do"])
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, request):
        answer = await HANDLERS[request["do"]](request)
        self._transport.write(json.dumps({"id": request["id"], **answer}).encode() + b"\n")


async def quote(request):
    await asyncio.sleep(0.002)  # another service knows the price
    return {"price": len(request["item"]) * 100}


async def sign_in(request):
    return {"welcome": accounts.is_right(request["name"], request["password"])}


async def order(request):
    journal.append(request["item"], request["count"])
    return {"ordered": request["count"]}


async def report(_request):
    return {"best": reports.best_sellers(journal.entries())}


HANDLERS = {"quote": quote, "sign in": sign_in, "order": order, "report": report}


async def main():
    with journal.opened():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Desk, "127.0.0.1", 0)
        async with server:
            await asyncio.to_thread(clients.play, server.sockets[0].getsockname())


if __name__ == "__main__":
    uvloop.run(main())
