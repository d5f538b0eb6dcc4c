"""Holds the GIL, in C, in a callback: until a byte comes on stdin."""

from __future__ import annotations

import asyncio
import ctypes

PYTHON = ctypes.PyDLL(None)  # its calls keep the GIL


async def main():
    await asyncio.sleep(0)
    PYTHON.read(0, ctypes.create_string_buffer(1), 1)


asyncio.run(main())
