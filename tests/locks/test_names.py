"""What a lock is called in reports: two of them are never called alike."""

from __future__ import annotations

import asyncio
import copy
import pickle
import time
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.building.stalls import SESSION

from loopcanary.kinds.places import entered_at
from loopcanary.model import StackFrame
from loopcanary.tracers.locks.hooks import LockHooks, made
from loopcanary.tracers.locks.tasks import TaskView
from loopcanary.tracers.locks.tracer import lock_names, task_name

GLOBAL = asyncio.Lock()


class Account:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()


@types.coroutine
def pause() -> Iterator[None]:
    yield


async def transfer(source: Any, target: Any) -> None:
    await pause()


def names(*tasks: tuple[Any, Any], locks: list[asyncio.Lock]) -> list[str]:
    coroutines = [transfer(*arguments) for arguments in tasks]
    for one in coroutines:
        one.send(None)
    views = [TaskView(None, "", one, mark=None, lock=None, tasks=(), keys=(), holds=()) for one in coroutines]
    try:
        found = lock_names(locks, views)
    finally:
        for one in coroutines:
            one.close()
    return [found[id(lock)] for lock in locks]


_PACKAGE: dict[str, Any] = {}
exec(compile("async def carries(work):\n    await work", "/site/package.py", "exec"), _PACKAGE)


@pytest.mark.parametrize(
    ("name", "is_carried", "told"),
    [
        ("starlette.Base.__call__.<locals>.coro", True, "transfer"),
        ("main.<locals>.load", False, "main.<locals>.load"),
        ("Task-3", True, "Task-3"),
    ],
)
def test_a_closure_of_a_packages_names_no_task(name: str, is_carried: bool, told: str) -> None:
    coroutine = _PACKAGE["carries"](transfer(1, 2)) if is_carried else transfer(1, 2)
    coroutine.send(None)
    view = TaskView(None, name, coroutine, mark=None, lock=None, tasks=(), keys=(), holds=())
    try:
        assert task_name(view, lambda file: file == __file__) == told
    finally:
        coroutine.close()


def test_a_name_that_lasts_goes_before_a_parameters() -> None:
    account = Account()
    found = names((GLOBAL, account.lock), (account, 1), locks=[GLOBAL, account.lock])
    assert found == ["Lock 'GLOBAL'", "Lock 'Account.lock'"]


def test_locks_of_one_class_have_numbers() -> None:
    one, other = Account(), Account()
    found = names((one, other), (other, one), locks=[one.lock, other.lock])
    assert found == ["Lock 1 'Account.lock'", "Lock 2 'Account.lock'"]


def test_a_lock_of_many_names_has_a_number() -> None:
    one, other = asyncio.Lock(), asyncio.Lock()
    assert names((one, other), (other, one), locks=[one, other]) == ["Lock 1", "Lock 2"]
    assert names((one, other), (one, other), locks=[one, other]) == ["Lock 'source'", "Lock 'target'"]
    assert names((one, None), (None, one), locks=[one]) == ["Lock"]


def test_a_lock_keeps_who_made_it_up_to_the_caller_of_a_constructor() -> None:
    assert made(Account().lock) == ()
    hooks = LockHooks(print, print, print)
    hooks.put_in()
    try:
        locks = [Account().lock, asyncio.Condition()._lock]  # type: ignore[attr-defined]
    finally:
        hooks.take_out()
    here = "test_a_lock_keeps_who_made_it_up_to_the_caller_of_a_constructor"
    assert [[code.co_name for code, _ in made(lock)] for lock in locks] == [["__init__", here], [here]]


def test_a_lock_that_keeps_who_made_it_can_be_pickled_and_copied() -> None:
    hooks = LockHooks(print, print, print)
    hooks.put_in()
    try:
        lock = asyncio.Lock()
    finally:
        hooks.take_out()
    assert made(lock)
    for copied in (pickle.loads(pickle.dumps(lock)), copy.deepcopy(lock)):
        assert made(copied) == ()


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("async def pay(a, b):\n    async with a:\n        async with b: pass\n", 2),
        ("async def pay(a, b):\n    async with a:\n        if b:\n            await b.acquire()\n", 2),
        ("async def pay(a, b):\n    async with a:\n        async with b:\n            await c()\n", None),
        ("async def pay(a, b):\n    async with timeout(3):\n        await b.acquire()\n", None),
        ("async def pay(a, b):\n  async with a:\n    async with timeout(3):\n      await b.c()\n", 2),
        ("async def pay(a, b):\n  async with of(a):\n    async with s:\n      await b.c()\n", None),
        ("async def pay(a, b):\n  await s.enter_async_context(a)\n  async with c:\n    await b.d()\n", None),
        ("async with a:\n    async def pay(a, b):\n        await b.acquire()\n", None),
    ],
)
def test_a_lock_was_taken_where_one_block_is_around(tmp_path: Path, source: str, line: int | None) -> None:
    file = tmp_path / "bank.py"
    file.write_text(source)
    last = len(source.splitlines())
    waits = StackFrame(function="pay", qualname="pay", file=str(file), line=last, in_app=True)
    started = replace(SESSION, started_wall_ns=time.time_ns() + 1_000_000_000)
    found = entered_at((waits,), started)
    assert (found and found.line) == line
