"""A NoneBot bot tells in the group how busy its machine is."""

from __future__ import annotations

import asyncio
import time

import nonebot
import psutil
from nonebot import on_command
from nonebot.adapters.onebot.v11 import Adapter, Bot, GroupMessageEvent, Message
from nonebot.adapters.onebot.v11.event import Sender
from nonebot.exception import MockApiException
from nonebot.message import handle_event

nonebot.init(driver="~none", log_level="ERROR", command_start={"/"})
driver = nonebot.get_driver()
driver.register_adapter(Adapter)

status = on_command("status", priority=5, block=True)


@status.handle()
async def tell_status() -> None:
    cpu = psutil.cpu_percent(interval=1)
    memory = psutil.virtual_memory().percent
    await status.finish(f"CPU {cpu:.0f} %, memory {memory:.0f} %")


@Bot.on_calling_api
async def say_it_here(bot: Bot, api: str, data: dict[str, object]) -> None:
    """There is no OneBot server here: what the bot would send is printed."""
    print(api, data["message"])
    raise MockApiException(result={"message_id": 1})


def group_message(number: int, text: str) -> GroupMessageEvent:
    return GroupMessageEvent(
        time=int(time.time()),
        self_id=10000,
        post_type="message",
        sub_type="normal",
        user_id=20000 + number,
        message_type="group",
        message_id=number,
        message=Message(text),
        original_message=Message(text),
        raw_message=text,
        font=0,
        sender=Sender(user_id=20000 + number, nickname="Ann"),
        group_id=500,
    )


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    bot = Bot(driver._adapters[Adapter.get_name()], "10000")
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(0.3)
    texts = ["/status", "good morning", "/status", "/status"]
    for number, text in enumerate(texts):
        await handle_event(bot, group_message(number, text))
        await asyncio.sleep(0.3)
    beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
