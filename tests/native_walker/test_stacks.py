"""What the walker reads of parked threads is what the interpreter says of them."""

from __future__ import annotations

import asyncio
import functools
import linecache
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

DEPTH_SHOWN_MAX = 256
NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="no /proc here")
released = threading.Event()


def park() -> int:
    released.wait()
    return 0


Position = tuple[str, str, int, int, int, int, int, int]


def expected_position(frame: FrameType) -> Position:
    code = frame.f_code
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[frame.f_lasti // 2]
    return (
        code.co_qualname,
        code.co_filename,
        line or 0,
        end_line or 0,
        0 if column is None else column + 1,
        0 if end_column is None else end_column + 1,
        code.co_firstlineno,
        code.co_flags,
    )


def expected_stack(thread: threading.Thread) -> list[Position]:
    frame: FrameType | None = sys._current_frames()[thread.ident or 0]
    stack = []
    while frame is not None:
        stack.append(expected_position(frame))
        frame = frame.f_back
    return stack


def wait_until_parked(thread: threading.Thread) -> None:
    """Returns when the thread is inside of the call that waits, and no longer on its way there."""
    while not is_parked(thread):
        time.sleep(0.001)


def is_parked(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or frame.f_code.co_filename != threading.__file__:
        return False
    _, _, line, _, column, *_ = position = expected_position(frame)
    call = linecache.getline(position[1], line)[column - 1 : position[5] - 1]
    return call.startswith("waiter.acquire(")


class Parked:
    """A thread that runs `target` until it parks."""

    def __init__(self, target: Callable[[], Any]) -> None:
        released.clear()
        self.thread = threading.Thread(target=target, daemon=True)
        self.thread.start()
        wait_until_parked(self.thread)

    def __enter__(self) -> threading.Thread:
        return self.thread

    def __exit__(self, *exc: object) -> None:
        released.set()
        self.thread.join()


# ---- what a program can be stopped in ---------------------------------------------------------------


def plain_calls() -> int:
    return len(str(park()))


def in_generator() -> list[int]:
    def numbers() -> Generator[int, None, None]:
        yield 1
        yield park()

    def outer() -> Iterator[int]:
        yield from numbers()

    return list(outer())


def in_coroutine() -> None:
    async def inner() -> int:
        await asyncio.sleep(0)
        return park()

    async def outer() -> int:
        return await inner() + 1

    asyncio.run(outer())


def in_async_generator() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        yield 1
        yield park()

    async def consume() -> list[int]:
        return [number async for number in numbers()]

    asyncio.run(consume())


def in_deep_coroutine_chain() -> None:
    async def chain(depth: int) -> int:
        if depth == 0:
            return park()
        return await chain(depth - 1)

    asyncio.run(chain(150))


def in_comprehension() -> list[int]:
    return [park() + number for number in (1, 2)]


def in_lambda() -> int:
    return (lambda value: value + park())(1)  # noqa: PLC3002 - is what is tested


def in_class_body() -> None:
    class Body:
        value = park()


def in_exec() -> None:
    source = "\n\n\ndef made_up(a):\n    return a + \\\n        park()\nmade_up(1)\n"
    exec(compile(source, "<made up>", "exec"), {"park": park})


def in_sort_key() -> list[int]:
    return sorted([2, 1], key=lambda value: value + park())


def in_partial_and_map() -> list[int]:
    def add(a: int, b: int) -> int:
        return a + b + park()

    return list(map(functools.partial(add, 1), [2, 3]))


def in_init_and_property() -> int:
    class Thing:
        def __init__(self) -> None:
            self.value = self.size

        @property
        def size(self) -> int:
            return park()

    return Thing().value


def in_recursion_of_many_frames() -> int:
    sys.setrecursionlimit(20_000)

    def recurse(depth: int) -> int:
        return park() if depth == 0 else recurse(depth - 1) + 1

    return recurse(10_000)


def in_finally_after_exception() -> None:
    try:
        raise ValueError  # noqa: TRY301 - is what is tested
    except ValueError:
        try:
            [].index(3)
        except ValueError:
            park()
    finally:
        str(1)


def with_names_of_latin_1() -> int:
    def gräßlich() -> int:  # noqa: PLC2401 - is what is tested
        return park()

    return gräßlich()


def with_names_of_two_bytes() -> int:
    def 世界() -> int:  # noqa: N802, PLC2401 - is what is tested
        return park()

    return 世界()


def with_names_of_four_bytes() -> int:
    namespace: dict[str, Any] = {"park": park}
    name = "f\U0001d538\U00010400\u00e9"  # letters outside of the basic plane
    exec(compile(f"def {name}():\n    return park()\n", f"<{name} \U0001f424>", "exec"), namespace)
    return next(value for key, value in namespace.items() if key.endswith("\u00e9"))()


PROGRAMS = [value for name, value in globals().copy().items() if name.startswith(("plain_", "in_", "with_"))]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_stack_is_what_the_interpreter_says(probe: ModuleType, program: Callable[[], Any]) -> None:
    with Parked(program) as thread:
        expected = expected_stack(thread)
        for _ in range(3):  # cold, and twice warm
            result, frames, truncated, _hash = probe.walk(thread.native_id)
            assert result == "ok"
            assert [frame[:8] for frame in frames] == expected[:DEPTH_SHOWN_MAX]
            assert truncated == (len(expected) > DEPTH_SHOWN_MAX)


def test_stack_is_the_same_when_it_is_read_without_the_cpu_clock(probe: ModuleType) -> None:
    probe.use_cpu_clock(False)
    try:
        with Parked(in_deep_coroutine_chain) as thread:
            result, frames, _, _ = probe.walk(thread.native_id)
            assert (result, [frame[:8] for frame in frames]) == ("ok", expected_stack(thread))
    finally:
        probe.use_cpu_clock(True)


def test_only_a_thread_that_has_run_is_read_again(probe: ModuleType) -> None:
    with Parked(plain_calls) as thread:
        expected = expected_stack(thread)
        before = probe.counts()["unmoved"]
        first = [probe.walk(thread.native_id) for _ in range(10)]
        assert all([frame[:8] for frame in frames] == expected for _, frames, _, _ in first)
        known = probe.counts()["unmoved"]
        assert known > before
        with Parked(in_deep_coroutine_chain) as other:  # its code takes places in the cache
            probe.walk(other.native_id)
            assert probe.walk(thread.native_id) == first[-1]
    moved_on = threading.Event()

    def moves_on() -> None:
        plain_calls()
        released.clear()
        moved_on.set()
        in_deep_coroutine_chain()

    with Parked(moves_on) as thread:
        stacks = [probe.walk(thread.native_id)[1] for _ in range(10)]
        released.set()
        moved_on.wait()
        wait_until_parked(thread)
        frames = probe.walk(thread.native_id)[1]
        assert [frame[:8] for frame in frames] == expected_stack(thread)
        assert frames != stacks[-1]


def test_equal_stacks_have_equal_hashes_and_serials(probe: ModuleType) -> None:
    with Parked(plain_calls) as thread:
        first, second = probe.walk(thread.native_id), probe.walk(thread.native_id)
        assert first == second


def test_a_reused_code_address_gets_a_new_serial(probe: ModuleType) -> None:
    serials = set()
    for number in range(20):
        text = f"def name_{number}():\n    return park()\nname_{number}()\n"
        with Parked(functools.partial(exec, compile(text, f"<{number}>", "exec"), {"park": park})) as thread:
            _, frames, _, _ = probe.walk(thread.native_id)
            made = [frame for frame in frames if frame[1] == f"<{number}>"]
            assert [frame[0] for frame in made] == [f"name_{number}", "<module>"]
            serials.add(made[0][8])
    assert len(serials) == 20


def test_undecodable_file_names_get_replacement_characters(probe: ModuleType) -> None:
    code = compile("park()", "plain", "exec").replace(co_filename="a\udcffb.py")
    with Parked(functools.partial(exec, code, {"park": park})) as thread:
        _, frames, _, _ = probe.walk(thread.native_id)
        assert "a\ufffdb.py" in [frame[1] for frame in frames]


def test_long_names_are_cut_on_the_edge_of_a_character(probe: ModuleType) -> None:
    code = compile("park()", "plain", "exec").replace(co_filename="x" + "é" * 600)
    with Parked(functools.partial(exec, code, {"park": park})) as thread:
        _, frames, _, _ = probe.walk(thread.native_id)
        assert "x" + "é" * 255 in [frame[1] for frame in frames]


def test_a_foreign_native_thread_id_is_unreadable(probe: ModuleType) -> None:
    assert probe.walk(0)[0] == "unreadable"


def test_threads_are_those_of_threading(probe: ModuleType) -> None:
    with Parked(plain_calls):
        assert set(probe.threads()) >= {thread.native_id for thread in threading.enumerate()}


def test_the_gils_holder_is_seen_from_every_thread(probe: ModuleType) -> None:
    with Parked(plain_calls) as thread:
        me = threading.get_native_id()
        assert probe.gil(me, True)[:2] == ("self", me)
        assert probe.gil(thread.native_id, True)[:2] == ("other", me)


def test_gil_is_free_when_every_thread_waits(probe: ModuleType) -> None:
    with Parked(plain_calls) as thread:
        states = {probe.gil(thread.native_id, False)[0] for _ in range(20)}
        assert "free" in states


@NEEDS_PROC
def test_a_gil_wait_is_inside_the_gils_addresses(probe: ModuleType) -> None:
    def wants_the_gil() -> None:
        begun.set()
        while not released.is_set():
            pass

    begun = threading.Event()
    released.clear()
    thread = threading.Thread(target=wants_the_gil, daemon=True)
    thread.start()
    begun.wait()
    answers = set()
    while True not in answers:  # on a busy machine the thread has yet to ask for the GIL
        answers.add(probe.waits_for_gil(thread.native_id))
    answers |= {probe.waits_for_gil(thread.native_id) for _ in range(200)}
    released.set()
    thread.join()
    assert answers - {None} == {True}


@NEEDS_PROC
def test_another_wait_is_no_wait_for_the_gil(probe: ModuleType) -> None:
    with Parked(plain_calls) as thread:
        while (answer := probe.waits_for_gil(thread.native_id)) is None:  # still on its way into the kernel
            time.sleep(0.001)
        assert answer is False
