"""Holds the GIL, in C, in a callback: until a byte comes on stdin. `--drop`: has its issues dropped."""

from __future__ import annotations

import asyncio
import ctypes
import sys

import loopcanary

PYTHON = ctypes.PyDLL(None)  # its calls keep the GIL


async def main():
    await asyncio.sleep(0)
    PYTHON.read(0, ctypes.create_string_buffer(1), 1)


if "--drop" in sys.argv:
    loopcanary.on_issue(lambda _: None)
asyncio.run(main())
