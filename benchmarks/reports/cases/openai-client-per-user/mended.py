"""A dispatcher answers a batch of questions; each user has a key of their own, and so a client of their own."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai.resources.chat.completions  # noqa: F401  # the first question would import it on the loop
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

TLS = ssl.create_default_context()
QUESTIONS = [(f"user{number}", f"What is {number} times {number}?") for number in range(30)]


class Model(BaseHTTPRequestHandler):
    """In place of the service of the model."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.02)
        message = {"role": "assistant", "content": "I am not sure."}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "small", "choices": [choice]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_parts: object) -> None:
        pass


async def ask(client: AsyncOpenAI, question: str, gate: asyncio.Semaphore) -> str:
    async with gate:
        answer = await client.chat.completions.create(
            model="small", messages=[{"role": "user", "content": question}]
        )
        await client.close()
        return answer.choices[0].message.content or ""


async def answer_all(url: str, questions: list[tuple[str, str]]) -> list[str]:
    gate = asyncio.Semaphore(2)
    tasks = []
    for user, question in questions:
        http_client = DefaultAsyncHttpxClient(verify=TLS)
        client = AsyncOpenAI(api_key=f"key-of-{user}", base_url=url, http_client=http_client)
        tasks.append(ask(client, question, gate))
    return await asyncio.gather(*tasks)


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(url: str) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(1)
    answers = await answer_all(url, QUESTIONS)
    await asyncio.sleep(0.5)
    beats.cancel()
    print(f"{len(answers)} answers, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    asyncio.run(main(f"http://127.0.0.1:{model.server_address[1]}/v1"))
