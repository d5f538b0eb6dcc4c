"""A sign-up endpoint checks that an address can be delivered to, and its loop waits for DNS."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import urllib.error
import urllib.request

import dns.message
import dns.resolver
import dns.rrset
import uvicorn
from email_validator import EmailNotValidError, validate_email
from fastapi import FastAPI, HTTPException

app = FastAPI()
resolver = dns.resolver.Resolver(configure=False)


def serve_dns(server: socket.socket) -> None:
    """Answers each question for MX after 1.5 seconds, as a nameserver far away that is busy."""
    while True:
        wire, client = server.recvfrom(512)
        answer = dns.message.make_response(dns.message.from_wire(wire), recursion_available=True)
        mail = dns.rrset.from_text(answer.question[0].name, 60, "IN", "MX", "10 mx.post-office.shop.")
        answer.answer.append(mail)
        time.sleep(1.5)
        server.sendto(answer.to_wire(), client)


@app.post("/sign-up")
async def sign_up(email: str) -> dict[str, str]:
    try:
        checked = validate_email(email, check_deliverability=True, dns_resolver=resolver)
    except EmailNotValidError as error:
        raise HTTPException(422, str(error)) from error
    return {"email": checked.normalized}


def visit(url: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as answer:
        return answer.read().decode()


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(config: uvicorn.Config, web: socket.socket) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[web]))
    await asyncio.sleep(1)
    port = web.getsockname()[1]
    print(await asyncio.to_thread(visit, f"http://127.0.0.1:{port}/sign-up?email=ann@post-office.shop"))
    await asyncio.sleep(1)
    beats.cancel()
    server.should_exit = True
    await serving
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 0))
    resolver.nameservers, resolver.port = ["127.0.0.1"], names.getsockname()[1]
    threading.Thread(target=serve_dns, args=(names,), daemon=True).start()
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = uvicorn.Config(app, log_level="warning")
    configuration.load()
    asyncio.run(main(configuration, listener))
