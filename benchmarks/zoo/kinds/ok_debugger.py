"""Control: a handler waits at a breakpoint of pdb, whose user thinks for a while."""

from __future__ import annotations

import asyncio
import io
import pdb
import time

from zoo.stage import run

EXPECT = {"control": True}


class SlowUser(io.StringIO):
    def readline(self, *words):
        time.sleep(0.4)
        return "continue\n"


def checkout():
    debugger = pdb.Pdb(stdin=SlowUser(), stdout=io.StringIO(), nosigint=True, readrc=False)
    debugger.set_trace()
    return 1


async def handler():
    await asyncio.sleep(0.1)
    checkout()
    await asyncio.sleep(0.1)


if __name__ == "__main__":
    run(handler)
