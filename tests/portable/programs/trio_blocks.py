"""Blocks a run of trio's under the portable engine."""

from __future__ import annotations

import sys

import trio
from waiting import blocks


async def handler():
    await trio.sleep(0.15)
    blocks()
    await trio.sleep(0.15)


async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(handler, name="Order 7")


trio.run(main)
if "uninstalled" in sys.argv:
    import loopcanary

    loopcanary.uninstall()
    trio.run(trio.sleep, 0)
    sys.stdout.write(f"trio's own {'__init__' in vars(trio._core._run.Instruments)}\n")
