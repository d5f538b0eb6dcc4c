"""An agent of the OpenAI Agents SDK calls a plain function as its tool, three times in one turn."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openai.resources.chat.completions  # noqa: F401  # the first question would import it on the loop
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI


class Model(BaseHTTPRequestHandler):
    """In place of the service of the model: asks for the tool three times, then answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message: dict = {"role": "assistant", "content": None}
        if question["messages"][-1]["role"] == "tool":
            message["content"] = "All three are well."
        else:
            message["tool_calls"] = [
                {"id": city, "type": "function", "function": {"name": "weather", "arguments": json.dumps({"city": city})}}
                for city in ("Bergen", "Porto", "Lviv")
            ]
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


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    time.sleep(1.5)  # in place of a slow request
    return f"{city}: 14 degrees"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main(agent: Agent) -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(1)
    began = time.monotonic()
    result = await Runner.run(agent, "How is the weather?")
    print(f"{result.final_output} ({time.monotonic() - began:.1f} s)")
    await asyncio.sleep(1)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    set_tracing_disabled(True)
    service = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    client = AsyncOpenAI(api_key="none", base_url=f"http://127.0.0.1:{service.server_address[1]}/v1")
    asyncio.run(main(Agent("Weather", tools=[weather], model=OpenAIChatCompletionsModel("small", client))))
