"""An agent asks Azure OpenAI, and logs in with the account of the Azure CLI, asynchronously."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import pathlib
import tempfile
import threading
import time

from azure.identity.aio import AzureCliCredential, get_bearer_token_provider
from openai import AsyncAzureOpenAI

SCOPE = "https://cognitiveservices.azure.com/.default"
AZ = """#!/bin/sh
sleep 0.7
printf '{"accessToken": "local", "expires_on": %s}' "$(( $(date +%s) + 200 ))"
"""


class Deployment(http.server.BaseHTTPRequestHandler):
    """Stands for the deployment of a model in Azure."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = asked["messages"][-1]["content"].upper()
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": text},
        }
        answer = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}
        body = json.dumps(answer | {"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


def start_deployment() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Deployment)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def install_az(folder: str) -> None:
    """A small az stands for the real one, which starts a Python and asks for a token."""
    az = pathlib.Path(folder, "az")
    az.write_text(AZ)
    az.chmod(0o755)
    os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def ask(client: AsyncAzureOpenAI, question: str) -> str:
    completion = await client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": question}]
    )
    return completion.choices[0].message.content


async def work(client: AsyncAzureOpenAI) -> None:
    note = "what is the weather in Bern?"
    for _step in range(3):
        note = "continue after: " + await ask(client, note)
        await asyncio.sleep(0.3)
    print(note)


async def main() -> None:
    provider = get_bearer_token_provider(AzureCliCredential(), SCOPE)
    client = AsyncAzureOpenAI(
        azure_endpoint=start_deployment(),
        api_version="2024-10-21",
        azure_ad_token_provider=provider,
    )
    print(await ask(client, "ready?"))
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.2)
    await work(client)
    beats.cancel()
    await client.close()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        install_az(folder)
        asyncio.run(main())
