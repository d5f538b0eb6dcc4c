"""A storage server: takes lists of blocks as CBOR, checks each list against the CDDL schema in a thread."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from io import BytesIO

import cbor2
import pycddl
from twisted.internet import reactor
from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.task import LoopingCall, deferLater, react
from twisted.internet.threads import deferToThread
from twisted.web.client import Agent, FileBodyProducer, readBody
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

SCHEMA = pycddl.Schema("""
upload = {"owner": tstr, "blocks": [* block]}
block = {"number": uint, "hash": bstr .size 32, "length": uint}
""")


class Uploads(Resource):
    isLeaf = True

    def render_POST(self, request: Request) -> int:
        self.check(request).addErrback(request.processingFailed)
        return NOT_DONE_YET

    @inlineCallbacks
    def check(self, request: Request) -> Generator[Deferred[None], None, None]:
        message = request.content.read()
        yield deferToThread(SCHEMA.validate_cbor, message)
        yield deferLater(reactor, 0.05)  # puts it down
        request.write(f"{len(message)} bytes are as they should be".encode())
        request.finish()


class Heartbeat(LoopingCall):
    def __init__(self) -> None:
        super().__init__(self.beat)
        self.late: list[float] = []
        self.last = time.perf_counter()

    def beat(self) -> None:
        now = time.perf_counter()
        self.late.append(now - self.last - 0.01)
        self.last = now


@inlineCallbacks
def main(reactor: object, message: bytes) -> Generator[Deferred[object], bytes, None]:
    port = reactor.listenTCP(0, Site(Uploads()), interface="127.0.0.1")
    address = f"http://127.0.0.1:{port.getHost().port}/".encode()
    heartbeat = Heartbeat()
    heartbeat.start(0.01)
    for _ in range(3):
        yield deferLater(reactor, 0.6)
        answer = yield Agent(reactor).request(b"POST", address, None, FileBodyProducer(BytesIO(message)))
        print((yield readBody(answer)).decode())
    heartbeat.stop()
    print(f"{len(heartbeat.late)} ticks, worst tick {max(heartbeat.late) * 1000:.0f} ms")
    yield port.stopListening()


if __name__ == "__main__":
    blocks = [{"number": number, "hash": os.urandom(32), "length": 4096} for number in range(60_000)]
    react(main, [cbor2.dumps({"owner": "ann", "blocks": blocks})])
