"""A detector's client asks a gRPC service for many pictures at once, in greenlets."""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json
import subprocess
import sys
import time

import gevent
import grpc

SERVER = """
import sys, threading, grpc
from concurrent.futures import ThreadPoolExecutor

def knock(request, context):
    threading.Event().wait(0.6)
    return b'{"boxes": 3}'

handler = grpc.method_handlers_generic_handler(
    "monk.Rules", {"Knock": grpc.unary_unary_rpc_method_handler(knock)}
)
server = grpc.server(ThreadPoolExecutor(8))
server.add_generic_rpc_handlers((handler,))
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
sys.stdin.read()
"""


def start_service() -> tuple[subprocess.Popen[str], str]:
    service = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return service, "127.0.0.1:" + service.stdout.readline().strip()


def detect(rule: int, address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        knock = channel.unary_unary("/monk.Rules/Knock")
        reply = knock(json.dumps({"rule": rule}).encode(), timeout=10)
    print(rule, json.loads(reply))


def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        gevent.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


def main() -> None:
    service, address = start_service()
    late: list[float] = []
    beats = gevent.spawn(heartbeat, late)
    gevent.sleep(0.5)
    began = time.perf_counter()
    gevent.joinall([gevent.spawn(detect, rule, address) for rule in range(5)])
    print(f"all rules took {time.perf_counter() - began:.1f} s")
    gevent.sleep(0.2)
    beats.kill()
    service.terminate()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
