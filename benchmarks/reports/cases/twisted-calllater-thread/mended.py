"""A honeypot on Twisted keeps a pool of guests alive and probes them every now and then."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

from twisted.internet import reactor, task, threads
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Factory, Protocol

PROBE = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(64)"


class SlowGuest(threading.Thread):
    """Says hello to each client, but only after a while."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self) -> None:
        while True:
            visitor, _ = self.listener.accept()
            time.sleep(0.6)
            visitor.sendall(b"SSH-2.0-guest\r\n")
            visitor.close()


class GuestPool:
    def __init__(self, port: int) -> None:
        self.port = port
        self.probes = 0

    def start(self) -> None:
        threads.deferToThread(self.look_after_guests)

    def look_after_guests(self) -> None:
        answer = subprocess.run([sys.executable, "-S", "-c", PROBE, str(self.port)], timeout=10)
        self.probes += 1
        print(f"probe {self.probes}: {'well' if answer.returncode == 0 else 'lost'}")
        reactor.callFromThread(reactor.callLater, 0.8, self.start)


class Login(Protocol):
    def connectionMade(self) -> None:
        self.transport.write(b"login: ")
        self.transport.loseConnection()


class Visitor(Protocol):
    def __init__(self) -> None:
        self.began = time.perf_counter()

    def dataReceived(self, data: bytes) -> None:
        print(f"visitor sees {data.decode()!r} after {time.perf_counter() - self.began:.2f} s")


def main() -> None:
    guest = SlowGuest()
    guest.start()
    door = reactor.listenTCP(0, Factory.forProtocol(Login), interface="127.0.0.1")
    endpoint = TCP4ClientEndpoint(reactor, "127.0.0.1", door.getHost().port)
    late: list[float] = []
    last = time.perf_counter()

    def beat() -> None:
        nonlocal last
        now = time.perf_counter()
        late.append(now - last - 0.01)
        last = now

    task.LoopingCall(beat).start(0.01)
    pool = GuestPool(guest.port)
    reactor.callLater(0.3, pool.start)
    task.LoopingCall(lambda: connectProtocol(endpoint, Visitor())).start(1.1)
    reactor.callLater(6, reactor.stop)
    reactor.run()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
