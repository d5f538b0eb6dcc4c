"""An agent of LangGraph runs three tools at once, and a wrapper writes down how long each of them took."""

from __future__ import annotations

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

SHOP = ""  # its address, set before the agent starts
TOOK: list[str] = []


class Shop(BaseHTTPRequestHandler):
    """In place of a slow service that the tool asks."""

    def do_GET(self) -> None:
        time.sleep(0.5)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"3 in stock")

    def log_message(self, *_parts: object) -> None:
        pass


@tool
def stock(article: str) -> str:
    """How many of an article are in stock."""
    return requests.get(f"{SHOP}/{article}", timeout=30).text


async def timed(request, execute):
    began = time.monotonic()
    result = await execute(request)
    TOOK.append(f"{request.tool_call['args']['article']} {time.monotonic() - began:.1f} s")
    return result


async def plan(_state: MessagesState) -> dict:
    """In place of the model: asks for three articles."""
    calls = [
        {"name": "stock", "args": {"article": article}, "id": f"call-{article}"} for article in ("tea", "rice", "salt")
    ]
    return {"messages": [AIMessage("", tool_calls=calls)]}


builder = StateGraph(MessagesState)
builder.add_node("plan", plan)
builder.add_node("tools", ToolNode([stock], awrap_tool_call=timed))
builder.add_edge(START, "plan")
builder.add_edge("plan", "tools")
builder.add_edge("tools", END)
graph = builder.compile()


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    beats = asyncio.create_task(heartbeat(late))
    await asyncio.sleep(1)
    state = await graph.ainvoke({"messages": [("user", "What do we have?")]})
    await asyncio.sleep(1)
    beats.cancel()
    print([message.content for message in state["messages"][2:]], ", ".join(TOOK))
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    shop = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    SHOP = f"http://127.0.0.1:{shop.server_address[1]}"
    asyncio.run(main())
