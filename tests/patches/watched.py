"""A program that looks at all that can be replaced in it: while it is plain, watched, and no longer watched.

Its arguments: the store, the engine, and an end; it writes a line of JSON for each look, and waits for a line
between them.
"""

from __future__ import annotations

import asyncio
import ctypes
import datetime as dt  # noqa: F401 - the engine imports it on some CPythons, and its types are then made ready
import json
import os
import sys
from contextlib import suppress
from typing import Any

import anyio._backends._asyncio  # noqa: F401 - whose locks are hooked, too
import everything
import trio
import uvloop

import loopcanary

# The engine asks them which interpreter it is in, and types there are then made ready.
for name in ("_interpreters", "_xxsubinterpreters"):
    with suppress(ImportError):
        __import__(name)

forks: list[Any] = []
register = os.register_at_fork


def recorded(**hooks: Any) -> None:
    forks.append(hooks)
    register(**hooks)


def look() -> everything.Snapshot:
    return everything.Snapshot(
        **{
            "hook os.register_at_fork, for good": len(forks),
            "hook select() of the loops' selectors": "select" in vars(kept._selector),
        }
    )


def say(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")
    sys.stdout.flush()


def run() -> None:
    kept.run_until_complete(asyncio.sleep(0))
    trio.run(trio.sleep, 0)
    runs_on_uvloop = uvloop.new_event_loop()
    runs_on_uvloop.run_until_complete(asyncio.sleep(0))
    runs_on_uvloop.close()


def hang() -> None:
    ctypes.PyDLL(None).sleep(1000)  # and keeps the GIL


os.register_at_fork = recorded
kept: Any = asyncio.SelectorEventLoop()
run()
plain = look()
settings = {"locks": True, "methods": ["__main__"], "startup": True}
signals = {"signals": ["TERM", "SEGV"]} if sys.argv[2] == "native" else {}


def install() -> None:
    loopcanary.install(
        store=sys.argv[1], engine=sys.argv[2], keeper=False, console="off", **settings, **signals
    )
    run()
    say(differs=sorted(look().since(plain)))


def patch_over() -> None:
    asyncio.Lock.release = os._exit = run
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(print)
    action = (ctypes.c_size_t * 32)(ctypes.cast(handler, ctypes.c_void_p).value)
    kept_alive.append(handler)
    ctypes.CDLL(None).syscall(*map(ctypes.c_long, (everything.SIGACTION, 15)), action, None, ctypes.c_long(8))


kept_alive: list[Any] = []
install()
end = sys.stdin.readline().strip()
if end == "hang":
    kept.call_soon(hang)
    kept.run_forever()
if end == "patch over":
    patch_over()
left = loopcanary.uninstall()
say(differs=sorted(look().since(plain)), left=left)
if sys.stdin.readline().strip() == "install again":
    install()
    sys.stdin.read()
