"""Deaths of code objects are counted, in the code type's destructor, and what died is read anew."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest


def template(arrived: threading.Event, leave: threading.Event) -> None:
    arrived.set()
    leave.wait()


def function_named(name: str) -> FunctionType:
    """A function whose code only it has."""
    code = template.__code__.replace(
        co_name=name, co_qualname=name, co_filename=f"<{name}>", co_firstlineno=100 + len(name)
    )
    return FunctionType(code, {})


class Inside:
    """A thread that is inside the function while the context lasts."""

    def __init__(self, function: FunctionType) -> None:
        self._leave = threading.Event()
        arrived = threading.Event()
        self._thread = threading.Thread(target=function, args=(arrived, self._leave), daemon=True)
        self._thread.start()
        arrived.wait()
        del function

    def __enter__(self) -> int:
        assert self._thread.native_id is not None
        return self._thread.native_id

    def __exit__(self, *exc: object) -> None:
        self._leave.set()
        self._thread.join()


def walk(probe: ModuleType, thread: int) -> list[Any]:
    """The frames; a thread that has just arrived may move on under the reader."""
    while True:
        result, frames, *_ = probe.walk(thread)
        if result == "ok":
            return list(frames)


def shown(probe: ModuleType, thread: int) -> set[tuple[str, str, int]]:
    """Name, file and first line of the generated code on the stack; by now trusted, if any can be."""
    frames = [walk(probe, thread) for _ in range(4)][-1]
    return {(name, file, first) for name, file, _, _, _, _, first, *_ in frames if file.startswith("<n")}


def trusted_by_a_walk(probe: ModuleType, thread: int) -> int:
    before = probe.counts()["codes_trusted"]
    walk(probe, thread)
    return int(probe.counts()["codes_trusted"] - before)


@pytest.fixture
def counting(probe: ModuleType) -> Iterator[ModuleType]:
    """The probe, which counts deaths, and reads threads also if they have not run since the last walk."""
    assert probe.watch_deaths()
    probe.use_cpu_clock(False)
    yield probe
    probe.use_cpu_clock(True)
    assert probe.watch_deaths()


def test_each_death_is_counted_where_it_happens(counting: ModuleType) -> None:
    functions = [function_named(f"n{number}") for number in range(50)]
    addresses = [id(function.__code__) for function in functions]
    before = [counting.deaths_at(address) for address in addresses]
    functions.clear()
    assert all(counting.deaths_at(address) > count for address, count in zip(addresses, before, strict=True))


def test_code_that_lives_is_not_looked_at_again(counting: ModuleType) -> None:
    with Inside(function_named("name")) as thread:
        assert shown(counting, thread) == {("name", "<name>", 104)}
        assert trusted_by_a_walk(counting, thread) > 0
        assert shown(counting, thread) == {("name", "<name>", 104)}


def test_a_successor_at_the_same_address_is_shown_as_what_it_is(counting: ModuleType) -> None:
    addresses: list[int] = []
    for number in range(100):
        name = "n" * (number % 7 + 1) + str(number)
        function = function_named(name)
        addresses.append(id(function.__code__))
        with Inside(function) as thread:
            del function
            assert shown(counting, thread) == {(name, f"<{name}>", 100 + len(name))}
    assert len(set(addresses)) < len(addresses)  # or nothing was tried


def test_the_destructor_is_given_back(counting: ModuleType) -> None:
    ours = counting.destructor()
    counting.leave_deaths()
    assert counting.destructor() != ours
    assert counting.deaths_at(id(template.__code__)) is None
    assert counting.watch_deaths()
    assert counting.destructor() == ours


def test_code_from_before_the_counting_is_proven_anew(counting: ModuleType) -> None:
    function = function_named("name")
    with Inside(function) as thread:
        shown(counting, thread)
        assert trusted_by_a_walk(counting, thread) > 0
        counting.leave_deaths()
        assert counting.watch_deaths()
        assert trusted_by_a_walk(counting, thread) == 0


def test_another_tools_destructor_stays_and_switches_trust_off(counting: ModuleType) -> None:
    ours = counting.destructor()
    with Inside(function_named("name")) as thread:
        shown(counting, thread)
        counting.wrap_destructor()
        try:
            theirs = counting.destructor()
            assert trusted_by_a_walk(counting, thread) == 0
            assert shown(counting, thread) == {("name", "<name>", 104)}
            counting.leave_deaths()
            assert counting.destructor() == theirs
            assert not counting.watch_deaths()
            for number in range(100):
                function_named(f"n{number}")  # dies in their hands, and then in ours
        finally:
            counting.unwrap_destructor()
        assert counting.destructor() == ours  # as they had found it
        assert counting.watch_deaths()
        shown(counting, thread)
        assert trusted_by_a_walk(counting, thread) > 0


def test_a_destructor_that_was_there_first_is_called(counting: ModuleType) -> None:
    counting.leave_deaths()
    counting.wrap_destructor()
    theirs = counting.destructor()
    try:
        assert counting.watch_deaths()
        assert counting.destructor() != theirs
        for number in range(100):
            function_named(f"n{number}")
        counting.leave_deaths()
        assert counting.destructor() == theirs
    finally:
        counting.unwrap_destructor()


# ---- the engine --------------------------------------------------------------------------------------

PROGRAM = """
    import ctypes, os, sys, types
    import loopcanary

    TP_DEALLOC = 6 * ctypes.sizeof(ctypes.c_void_p)  # Include/cpython/object.h, struct _typeobject

    def destructor():
        return ctypes.c_void_p.from_address(id(types.CodeType) + TP_DEALLOC).value

    def live_and_die():
        for number in range(1000):
            exec(f"def f{number}(): return {number}\\nassert f{number}() == {number}", {})

    def run_engine():
        loopcanary.install(engine="native", store=sys.argv[1], console="off")
        live_and_die()
        inside = destructor()
        loopcanary.uninstall()
        live_and_die()
        return inside

    original = destructor()
    ours = run_engine()
    print(ours != original, destructor() == original)
    print(run_engine() == ours, destructor() == original)

    loopcanary.install(engine="native", store=sys.argv[1], console="off")
    child = os.fork()
    if child == 0:
        live_and_die()
        loopcanary.uninstall()
        live_and_die()
        os._exit(0 if destructor() == original else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, destructor() == ours)
    live_and_die()
"""


@pytest.mark.native
def test_the_engine_puts_its_destructor_there_and_takes_it_away(tmp_path: Any) -> None:
    # From 3.12 on a fork beside the engine's thread is warned of.
    options = ["-W", "ignore::DeprecationWarning"]
    words = [sys.executable, *options, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["True"] * 6


FAILING_START = """
    import resource
    from loopcanary import _native

    original = destructor()
    run_engine()
    free = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used, free[1]))
    try:
        _native.start(sys.argv[1] + "/failing", b"{}", 10**8, 10**7, 10**7, 10**10, 10**9)
        refusal = None
    except RuntimeError as error:
        refusal = error
    resource.setrlimit(resource.RLIMIT_AS, free)
    print(str(refusal) == "no memory for the native walker")
    for _ in range(2):
        run_engine()
        print(destructor() == original)
"""


@pytest.mark.native
def test_a_failed_start_gives_back_only_what_it_took(tmp_path: Any) -> None:
    definitions = textwrap.dedent(PROGRAM).partition("\noriginal = ")[0]
    words = [sys.executable, "-c", definitions + textwrap.dedent(FAILING_START), str(tmp_path)]
    ended = subprocess.run(words, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["True"] * 3


def test_code_cannot_be_subclassed() -> None:
    """What of the decision rests on it: no other type has a copy of the slot."""
    with pytest.raises(TypeError):
        type("Code", (CodeType,), {})
