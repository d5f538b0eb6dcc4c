"""A Discord bot: !workspaces awaits the hub for its list. Discord and the hub are played by a thread."""

import asyncio
import concurrent.futures
import json
import threading
import time

import discord
from aiohttp import ClientSession, web
from discord.ext import commands

PERSON = {"id": "2", "username": "ann", "discriminator": "0", "avatar": None}
NOTHING = {"tts": False, "mentions": [], "mention_roles": [], "attachments": [], "embeds": []}
MESSAGE = {"id": "10", "channel_id": "5", "author": PERSON, "content": "!workspaces", "type": 0, "pinned": False}
MESSAGE |= {"timestamp": "2026-04-12T10:00:00+00:00", "edited_timestamp": None, "mention_everyone": False} | NOTHING
BOT = PERSON | {"id": "1", "flags": 0, "name": "bot", "description": "", "icon": None}
BOT |= {"bot_public": True, "bot_require_code_grant": False, "verify_key": "", "owner": PERSON}
READY = {"v": 10, "user": BOT, "guilds": [], "session_id": "s", "application": BOT, "resume_gateway_url": "ws://x"}


def send_json(data: object) -> web.Response:
    return web.Response(body=json.dumps(data).encode(), content_type="application/json")


async def gateway(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41250}, "s": None, "t": None})
    async for frame in socket:
        if json.loads(frame.data)["op"] == 2:
            await socket.send_json({"op": 0, "t": "READY", "s": 1, "d": READY})
            for number in range(3):
                await asyncio.sleep(1.5)
                message = MESSAGE | {"id": str(10 + number)}
                await socket.send_json({"op": 0, "t": "MESSAGE_CREATE", "s": 2 + number, "d": message})
    return socket


async def answer(request: web.Request) -> web.Response:
    if request.method == "POST":
        print(f"bot: {(await request.json())['content']}", flush=True)
        return send_json(MESSAGE | {"id": "99"})
    return send_json(["main", "docs"] if request.path == "/hub/workspaces" else BOT)


def run_discord_and_hub(is_up: concurrent.futures.Future[int]) -> None:
    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/gateway/", gateway)
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        is_up.set_result(site._server.sockets[0].getsockname()[1])
        await asyncio.sleep(3600)

    asyncio.run(serve())


class HubClient:
    def __init__(self, address: str) -> None:
        self.address = address

    async def list_agent_workspaces(self) -> list[str]:
        async with ClientSession() as session, session.get(f"{self.address}/hub/workspaces") as found:
            return await found.json()


class Workspaces(commands.Cog):
    def __init__(self, hub: HubClient) -> None:
        self.hub = hub
        self.cached: list[str] = []

    async def load_workspaces(self) -> list[str]:
        try:
            self.cached = await asyncio.wait_for(self.hub.list_agent_workspaces(), 1)
        except asyncio.TimeoutError:
            print("hub did not answer, using the cache")
        return self.cached

    @commands.command()
    async def workspaces(self, context: commands.Context) -> None:
        await context.send("workspaces: " + (", ".join(await self.load_workspaces()) or "none"))


class Bot(commands.Bot):
    def __init__(self, address: str) -> None:
        super().__init__("!", intents=discord.Intents.default() | discord.Intents(message_content=True))
        self.hub = HubClient(address)
        self.late: list[float] = []

    async def setup_hook(self) -> None:
        await self.add_cog(Workspaces(self.hub))
        self.beats = asyncio.create_task(self.heartbeat())

    async def heartbeat(self) -> None:
        end = time.perf_counter() + 7.5
        while time.perf_counter() < end:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            self.late.append(time.perf_counter() - began - 0.01)
        await self.close()


def main() -> None:
    is_up: concurrent.futures.Future[int] = concurrent.futures.Future()
    threading.Thread(target=run_discord_and_hub, args=(is_up,), daemon=True).start()
    address = f"http://127.0.0.1:{is_up.result()}"
    discord.http.Route.BASE = address
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = discord.gateway.yarl.URL(f"{address}/gateway/")
    bot = Bot(address)
    bot.run("token", log_handler=None)
    print(f"{len(bot.late)} ticks, worst tick {max(bot.late) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
