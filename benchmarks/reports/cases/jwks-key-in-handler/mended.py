"""An API under uvloop lets in callers with a token that the identity provider has signed; a thread fetches its keys."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import time

import jwt
import uvicorn
import uvloop
from aiohttp import ClientSession
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

PROVIDER = """
import http.server, sys, time

class Keys(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.6)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[1].encode())

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keys)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


class VerifyToken:
    """Does all the token verification."""

    def __init__(self, url: str) -> None:
        self.jwks_client = jwt.PyJWKClient(url, lifespan=1)

    async def verify(self, token: HTTPAuthorizationCredentials = Depends(HTTPBearer())) -> dict[str, str]:
        try:
            signing_key = await asyncio.to_thread(self.jwks_client.get_signing_key_from_jwt, token.credentials)
            return jwt.decode(token.credentials, signing_key.key, algorithms=["RS256"])
        except jwt.exceptions.PyJWTError as error:
            raise HTTPException(403, str(error)) from error


def make_app(auth: VerifyToken) -> FastAPI:
    app = FastAPI()

    @app.get("/private")
    async def private(claims: dict[str, str] = Depends(auth.verify)) -> dict[str, str]:
        return {"hello": claims["sub"]}

    return app


def as_text(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).decode().rstrip("=")


def start_provider() -> tuple[subprocess.Popen[str], str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_numbers()
    keys = [{"kty": "RSA", "use": "sig", "kid": "one", "n": as_text(public.n), "e": as_text(public.e)}]
    command = [sys.executable, "-c", PROVIDER, json.dumps({"keys": keys})]
    provider = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    token = jwt.encode({"sub": "ada"}, key, algorithm="RS256", headers={"kid": "one"})
    return provider, f"http://127.0.0.1:{int(provider.stdout.readline())}/jwks.json", token


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(url: str, token: str) -> None:
    server = uvicorn.Server(uvicorn.Config(make_app(VerifyToken(url)), port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/private"
    late: list[float] = []
    async with ClientSession(headers={"Authorization": f"Bearer {token}"}) as visitor:
        beats = asyncio.create_task(heartbeat(late))
        for _ in range(10):
            async with visitor.get(address) as answer:
                print(answer.status, await answer.text())
            await asyncio.sleep(0.3)
        beats.cancel()
    server.should_exit = True
    await serving
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    process, jwks, signed = start_provider()
    uvloop.run(main(jwks, signed))
    process.terminate()
    process.wait()
    process.stdout.close()
