"""A Telegram bot handles one update after the other; a handler that sleeps keeps the next one waiting."""

from __future__ import annotations

import asyncio
import json
import time

import anyio._backends._asyncio  # noqa: F401  # the first request would import it on the loop
from aiohttp import web
from telegram import Update
from telegram.ext import Application, CommandHandler, ContextTypes

ANN = {"id": 2, "is_bot": False, "first_name": "Ann"}
CHAT = {"id": 2, "type": "private"}
began = time.monotonic()


def command(number: int, text: str) -> dict[str, object]:
    entity = {"type": "bot_command", "offset": 0, "length": len(text)}
    message = {"message_id": number, "date": 0, "chat": CHAT, "from": ANN, "text": text, "entities": [entity]}
    return {"update_id": number, "message": message}


WAITING = [command(1, "/album"), command(2, "/hello")]


async def bot_api(request: web.Request) -> web.Response:
    """In place of Telegram's servers."""
    method, result = request.match_info["method"], True
    if method == "getMe":
        result = {"id": 1, "is_bot": True, "first_name": "local", "username": "local_bot"}
    elif method == "getUpdates":
        await asyncio.sleep(0.3)
        result = [WAITING.pop(0)] if WAITING else []
    elif method == "sendMessage":
        sent = await request.post()
        print(f"{sent['text']} after {time.monotonic() - began:.1f} s", flush=True)
        result = command(9, "sent")["message"]
    return web.Response(text=json.dumps({"ok": True, "result": result}), content_type="application/json")


async def album(update: Update, _context: ContextTypes.DEFAULT_TYPE) -> None:
    await asyncio.sleep(4)
    await update.effective_message.reply_text("album sent")


async def hello(update: Update, _context: ContextTypes.DEFAULT_TYPE) -> None:
    await update.effective_message.reply_text("hello")


async def heartbeat(late: list[float]) -> None:
    while True:
        seen = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - seen - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    servers = web.Application()
    servers.add_routes([web.post("/bot{token}/{method}", bot_api)])
    runner = web.AppRunner(servers)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/bot"
    application = await asyncio.to_thread(Application.builder().token("1:local").base_url(url).build)
    application.add_handlers([CommandHandler("album", album), CommandHandler("hello", hello)])
    async with application:
        await application.start()
        await application.updater.start_polling(poll_interval=0.1)
        await asyncio.sleep(6)
        await application.updater.stop()
        await application.stop()
    beats.cancel()
    await runner.cleanup()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
