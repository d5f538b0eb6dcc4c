"""An agent reads long contracts through litellm's router, and counts their tokens in a thread before."""

from __future__ import annotations

import asyncio
import os
import random
import time

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from litellm import Router

LIMIT = 1_000_000
SIGNS = "甲乙方应当按照本合同约定在收到货物后三十日内支付价款除非双方另有书面协议违者承担赔偿责任并适用法律"


def deployment(model: str, limit: int) -> dict[str, object]:
    return {
        "model_name": "reader",
        "litellm_params": {
            "model": "openai/" + model,
            "api_key": "local",
            "mock_response": "No clause is missing.",
        },
        "model_info": {"max_input_tokens": limit},
    }


router = Router(
    model_list=[deployment("gpt-4.1", LIMIT), deployment("gpt-4.1-mini", LIMIT)],
    num_retries=0,
)


def scan(clauses: int) -> str:
    """A contract as a scanner read it: whole clauses without a comma."""
    dice = random.Random(8)
    texts = ["".join(dice.choices(SIGNS, k=dice.randint(90, 160))) for _ in range(clauses)]
    return "\n".join(f"{number}. {text}。" for number, text in enumerate(texts))


async def read(question: str, text: str) -> str:
    messages = [{"role": "user", "content": f"{question}\n\n{text}"}]
    count = await asyncio.to_thread(litellm.token_counter, model="gpt-4.1", messages=messages)
    if count > LIMIT:
        raise ValueError("too long for every deployment")
    completion = await router.acompletion(model="reader", messages=messages)
    return completion.choices[0].message.content


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    clauses = scan(6_000)
    await read("Is this a contract?", clauses[:500])
    await asyncio.sleep(0.5)
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.2)
    for number in range(3):
        print(await read("Which clause is missing?", f"合同 {number}\n{clauses}"))
        await asyncio.sleep(0.3)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
