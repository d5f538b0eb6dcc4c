"""Installs loopcanary in the middle of a run of trio's, here and in another thread. trio_joined.py STORE"""

from __future__ import annotations

import sys
import threading

import trio

import loopcanary

installed, runs = threading.Event(), threading.Event()


async def elsewhere():
    runs.set()
    await trio.to_thread.run_sync(installed.wait)
    await trio.sleep(0.05)
    blocks_elsewhere()


def blocks_elsewhere():
    from waiting import blocks

    blocks()


async def main():
    await trio.sleep(0.01)
    loopcanary.install(store=sys.argv[1], engine="portable", console=False)
    installed.set()
    await trio.sleep(0.05)
    await trio.to_thread.run_sync(thread.join)
    blocks_elsewhere()


thread = threading.Thread(target=trio.run, args=(elsewhere,))
thread.start()
runs.wait()
trio.run(main)
