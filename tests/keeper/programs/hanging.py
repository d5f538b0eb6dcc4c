"""Hangs in a callback until it is killed, or its stdin ends."""

from __future__ import annotations

import asyncio
import os
import sys


async def main():
    await asyncio.sleep(0)
    os.write(1, b"hangs\n")
    sys.stdin.read()


asyncio.run(main())
