"""A Slack bot guards a value with threading.Lock, which a suspended task of the same loop holds."""

from __future__ import annotations

import asyncio
import json
import threading
import time

from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult


async def authorize(**_context: object) -> AuthorizeResult:
    return AuthorizeResult(
        enterprise_id="E1", team_id="T1", bot_token="xoxb-local", bot_id="B1", bot_user_id="U1"
    )


app = AsyncApp(signing_secret="local", authorize=authorize, request_verification_enabled=False)
mutex = threading.Lock()
health = {"checks": 0}


async def update() -> None:
    """Looks at the services every now and then, and keeps readers out while it does."""
    while True:
        with mutex:
            await asyncio.sleep(0.5)
            health["checks"] += 1
        await asyncio.sleep(0.5)


async def get() -> str:
    if not mutex.acquire(timeout=3):
        return "no answer"
    try:
        return f"{health['checks']} checks"
    finally:
        mutex.release()


@app.command("/health")
async def tell_health(ack: object) -> None:
    await ack(await get())


async def command() -> str:
    body = "command=%2Fhealth&team_id=T1&user_id=U2&channel_id=C1"
    headers = {"content-type": ["application/x-www-form-urlencoded"]}
    response = await app.async_dispatch(AsyncBoltRequest(body=body, headers=headers))
    return response.body


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    updates = asyncio.create_task(update())
    await asyncio.sleep(0.75)
    print(json.dumps(await command()))
    await asyncio.sleep(0.5)
    print(json.dumps(await command()))
    await asyncio.sleep(1)
    updates.cancel()
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
