"""An MCP server whose tools are plain functions that wait: an agent calls several of them at once."""

from __future__ import annotations

import asyncio
import subprocess
import time

from fastmcp import Client, FastMCP

mcp = FastMCP("Warehouse")


@mcp.tool
def count_stock(article: str) -> str:
    """Asks the old inventory system, which takes its time."""
    time.sleep(1)
    return f"{len(article) * 7} pieces of {article}"


@mcp.tool
def run_report(name: str) -> str:
    """Has a report written by another program."""
    done = subprocess.run(["sh", "-c", f"sleep 0.8; echo report {name}"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    async with Client(mcp) as agent:
        print([tool.name for tool in await agent.list_tools()])
        await agent.call_tool("run_report", {"name": "warm-up"})
        beats = asyncio.create_task(heartbeat(late))
        began = time.perf_counter()
        for _ in range(3):
            answers = await asyncio.gather(
                agent.call_tool("count_stock", {"article": "screws"}),
                agent.call_tool("count_stock", {"article": "nails"}),
                agent.call_tool("run_report", {"name": "week"}),
            )
            print([answer.data for answer in answers])
        print(f"{time.perf_counter() - began:.1f} s")
        beats.cancel()
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
