"""The names of asyncio work, read from a Handle's memory."""

from __future__ import annotations

import asyncio
import functools
from types import ModuleType
from typing import Any

import pytest


class Loop(asyncio.SelectorEventLoop):
    """Notes the handles it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[Any] = []

    def call_soon(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        handle = super().call_soon(*args, **kwargs)
        self.handles.append(handle)
        return handle


@pytest.fixture
def loop(probe: ModuleType) -> Any:
    assert probe.learn_asyncio()
    loop = Loop()
    yield loop
    loop.close()


def function() -> None: ...


class Thing:
    def method(self) -> None: ...

    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("callback", "name"),
    [
        (function, "function"),
        (Thing().method, "Thing.method"),
        (functools.partial(function), "function"),
        (functools.partial(functools.partial(Thing().method, 1), 2), "Thing.method"),
        ([].append, "list.append"),
        (print, "print"),
        (Thing(), ""),
    ],
    ids=["function", "method", "partial", "partial of partial", "builtin method", "builtin", "instance"],
)
def test_callback_is_named(probe: ModuleType, loop: Loop, callback: Any, name: str) -> None:
    assert probe.work(loop.call_soon(callback)) == (name, "")
    timer = loop.call_later(10, callback)
    assert probe.work(timer) == (name, "")
    timer.cancel()


def test_first_step_of_a_task_is_named_by_coroutine_and_task(probe: ModuleType, loop: Loop) -> None:
    async def job() -> None: ...

    task = loop.create_task(job(), name="the jöb")
    assert probe.work(loop.handles[-1]) == (job.__qualname__, "the jöb")
    loop.run_until_complete(task)


def test_a_task_without_a_name_has_its_number(probe: ModuleType, loop: Loop) -> None:
    async def job() -> None: ...

    task = loop.create_task(job())
    named = probe.work(loop.handles[-1])
    assert named == (job.__qualname__, task.get_name())
    assert task.get_name().startswith("Task-")
    loop.run_until_complete(task)


def test_wake_up_of_a_task_is_named_by_coroutine_and_task(probe: ModuleType, loop: Loop) -> None:
    async def job(future: asyncio.Future[None]) -> None:
        await future

    future: asyncio.Future[None] = loop.create_future()
    task = loop.create_task(job(future), name="waits")
    loop.run_until_complete(asyncio.sleep(0))
    loop.handles.clear()
    future.set_result(None)
    names = [probe.work(handle) for handle in loop.handles]
    assert (job.__qualname__, "waits") in names
    loop.run_until_complete(task)


def test_work_that_is_watched_by_name_has_that_name(probe: ModuleType, loop: Loop) -> None:
    assert probe.work("nightly job") == ("nightly job", "")


def test_work_that_is_a_callable_has_its_name(probe: ModuleType) -> None:
    assert probe.work(function) == ("function", "")


def test_anything_else_has_no_name(probe: ModuleType, loop: Loop) -> None:
    assert probe.work(object()) == ("", "")


def test_learning_leaves_no_task_behind_and_says_nothing(
    probe: ModuleType, loop: Loop, capfd: pytest.CaptureFixture[str]
) -> None:
    assert probe.learn_asyncio()
    assert asyncio.all_tasks(loop) == set()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["", "plain", "gräßlich", "世界", "\U0001f424!"])
def test_text_of_a_str(probe: ModuleType, text: str) -> None:
    assert probe.text(text) == text


@pytest.mark.parametrize("value", [b"bytes", 12, None, type("Sub", (str,), {})("sub")], ids=repr)
def test_no_text_of_anything_else(probe: ModuleType, value: object) -> None:
    assert probe.text(value) == ""
