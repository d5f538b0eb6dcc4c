"""Holds the GIL, in C, in a callback: until a byte comes on stdin. `--drop`: has its issues dropped.
`--patient`: waits at its end for a keeper on a busy machine."""

from __future__ import annotations

import asyncio
import ctypes
import sys

import loopcanary
from loopcanary.assembly import kept

PYTHON = ctypes.PyDLL(None)  # its calls keep the GIL


async def main():
    await asyncio.sleep(0)
    PYTHON.read(0, ctypes.create_string_buffer(1), 1)


if "--patient" in sys.argv:
    kept.END_PATIENCE_S = 60  # a keeper on a busy host
if "--drop" in sys.argv:
    loopcanary.on_issue(lambda _: None)
asyncio.run(main())
