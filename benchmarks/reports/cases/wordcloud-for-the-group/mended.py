"""A group bot: /cloud draws a cloud in an executor. The chat is played by a client in a thread."""

from __future__ import annotations

import asyncio
import io
import json
import random
import socket
import time

import nonebot
import uvicorn
from nonebot import get_driver, on_command
from nonebot.adapters.onebot.v11 import Adapter, GroupMessageEvent, MessageSegment
from websockets.asyncio.client import connect
from wordcloud import WordCloud, get_single_color_func

with socket.create_server(("127.0.0.1", 0)) as free:
    PORT = free.getsockname()[1]
RANDOM = random.Random(5)
WORDS = {"".join(RANDOM.choices("aeioklmnprst", k=RANDOM.randint(3, 9))): RANDOM.randint(1, 90) for _ in range(300)}

nonebot.init(log_level="WARNING", command_start=["/"])
get_driver().register_adapter(Adapter)
cloud = on_command("cloud")


def draw_cloud(words: dict[str, int]) -> bytes:
    colour = get_single_color_func("steelblue")
    artist = WordCloud(width=600, height=400, max_words=150, random_state=5, color_func=colour)
    picture = artist.generate_from_frequencies(words)
    file = io.BytesIO()
    picture.to_image().save(file, format="PNG")
    return file.getvalue()


@cloud.handle()
async def send_cloud(event: GroupMessageEvent) -> None:
    drawn = await asyncio.get_running_loop().run_in_executor(None, draw_cloud, WORDS)
    await cloud.finish(MessageSegment.image(drawn))


async def ask_for_clouds() -> None:
    """The chat's client: says /cloud in a group and waits for the picture."""
    sender = {"user_id": 7, "nickname": "ann"}
    event = {"post_type": "message", "message_type": "group", "sub_type": "normal", "self_id": 1, "user_id": 7}
    event |= {"group_id": 3, "message": "/cloud", "raw_message": "/cloud", "font": 0, "sender": sender}
    headers = {"X-Self-ID": "1", "X-Client-Role": "Universal"}
    async with connect(f"ws://127.0.0.1:{PORT}/onebot/v11/ws", additional_headers=headers) as socket:
        for number in range(2):
            await asyncio.sleep(1)
            await socket.send(json.dumps(event | {"message_id": number, "time": 1}))
            call = json.loads(await socket.recv())
            await socket.send(json.dumps({"status": "ok", "retcode": 0, "data": {}, "echo": call["echo"]}))
            print(f"{call['action']}: {len(str(call['params']))} characters", flush=True)


async def heartbeat(late: list[float]) -> None:
    """As the timed jobs of the bot, which should run when their time comes."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    server = uvicorn.Server(uvicorn.Config(nonebot.get_asgi(), port=PORT, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.05)
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.to_thread(asyncio.run, ask_for_clouds())
    beats.cancel()
    server.should_exit = True
    await serving
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
