"""Blocks a run of trio's under the portable engine."""

from __future__ import annotations

import sys

import trio
from waiting import blocks

import loopcanary


async def handler():
    with loopcanary.scene("orders"):
        await trio.sleep(0.15)
        blocks()
        await trio.sleep(0.15)


async def elsewhere():
    await trio.sleep(0.05)
    with loopcanary.scene("elsewhere"):
        await trio.sleep_forever()


async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(elsewhere)
        async with trio.open_nursery() as inner:
            inner.start_soon(handler, name="Order 7")
        nursery.cancel_scope.cancel()


trio.run(main)
if "uninstalled" in sys.argv:
    loopcanary.uninstall()
    trio.run(trio.sleep, 0)
    sys.stdout.write(f"trio's own {'__init__' in vars(trio._core._run.Instruments)}\n")
