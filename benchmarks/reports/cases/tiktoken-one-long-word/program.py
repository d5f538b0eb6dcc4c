"""A FastAPI service in front of a language model refuses texts of too many tokens: it counts them with tiktoken."""

from __future__ import annotations

import asyncio
import time

import httpx
import tiktoken
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

MOST_TOKENS = 500
LETTERS = r"\p{L}+|\p{N}{1,3}|[^\s\p{L}\p{N}]+|\s+"

ranks = {bytes([byte]): byte for byte in range(256)}
for piece in (b"th", b"he", b"aa", b"aaaa", b"aaaaaaaa", b"ou", b"the", b"you"):
    ranks[piece] = len(ranks)
encoding = tiktoken.Encoding("small", pat_str=LETTERS, mergeable_ranks=ranks, special_tokens={})
app = FastAPI()


class Prompt(BaseModel):
    text: str


@app.post("/ask")
async def ask(prompt: Prompt) -> dict[str, int]:
    tokens = len(encoding.encode(prompt.text))
    if tokens > MOST_TOKENS:
        raise HTTPException(413, f"more than {MOST_TOKENS} tokens")
    return {"tokens": tokens}


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
        print((await client.post("/ask", json={"text": "hello"})).json())
        beats = asyncio.create_task(heartbeat(late))
        for text in ("do you know the other house? " * 10, "a" * 24_000, "where are you? " * 20, "a" * 28_000):
            await asyncio.sleep(0.5)
            answer = await client.post("/ask", json={"text": text})
            print(f"{len(text)} characters: {answer.status_code} {answer.json()}")
        beats.cancel()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
