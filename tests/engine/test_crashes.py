"""Crashes: `signals` names faults. The line is known whatever the loop does; and all is as without it."""

from __future__ import annotations

import signal
from typing import NamedTuple

import pytest

from loopcanary.model import Cause, Stall, StallScope, StallState

from .watching import PATIENT_SIGNALS, PRELUDE, Place

pytestmark = pytest.mark.native

PARTS = """
    import ctypes, faulthandler
    libc = ctypes.CDLL(None)
    expression = ctypes.create_string_buffer(4096)

    def crash():
        ctypes.string_at(1)

    def recurse():
        # The C library goes down once for each bracket.
        libc.regcomp(expression, b"(" * 2_000_000, 1)

    def in_a_thread(does):
        async def main():
            threading.Thread(target=does, name="worker").start()
            await asyncio.sleep(60)
        return main()

    async def in_a_turn(does):
        asyncio.get_running_loop().call_soon(does)
        await asyncio.sleep(60)

    async def in_a_thread_of_c(_):
        libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, ctypes.c_void_p(16), None)
        await asyncio.sleep(60)
"""
REPORTER = "faulthandler.enable()"
BEFORE = "asyncio.run(asyncio.sleep(0))"


class Story(NamedTuple):
    does: str
    line: str | None
    thread: str = "MainThread"
    is_stack_over: bool = False
    scope: StallScope = StallScope.THREAD


RECURSES = 'libc.regcomp(expression, b"(" * 2_000_000, 1)'
STORIES = {
    "before a loop runs": Story("crash()", "ctypes.string_at(1)"),
    "between loops": Story(f"{BEFORE}; crash()", "ctypes.string_at(1)"),
    "beside a loop": Story("asyncio.run(in_a_thread(crash))", "ctypes.string_at(1)", "worker"),
    "in a thread without Python": Story("asyncio.run(in_a_thread_of_c(crash))", None, ""),
    "in a turn, of too deep a recursion": Story(
        "asyncio.run(in_a_turn(recurse))", RECURSES, is_stack_over=True, scope=StallScope.CALLBACK
    ),
    "before a loop runs, of too deep a recursion": Story("recurse()", RECURSES, is_stack_over=True),
    "beside a loop, of too deep a recursion": Story(
        "asyncio.run(in_a_thread(recurse))", RECURSES, "worker", is_stack_over=True
    ),
}


def crashed(place: Place, program: str, **env: str) -> tuple[Stall, str]:
    """The crash, and what was on stderr."""
    done = place.run(
        place.program(PARTS + program, prelude=PATIENT_SIGNALS + PRELUDE),
        status=-signal.SIGSEGV,
        LOOPCANARY_SIGNALS="segv,bus,fpe,ill",
        **env,
    )
    (stall,) = [one for one in place.stalls() if one.cause is Cause.CRASH]  # a busy machine has others
    return stall, done.stderr


@pytest.mark.parametrize("reporter", ["", REPORTER], ids=["nothing for it", "a crash reporter"])
@pytest.mark.parametrize("name", STORIES)
def test_a_crash_leaves_its_line_wherever_it_comes(place: Place, name: str, reporter: str):
    story = STORIES[name]
    program = f"""
    {reporter}
    {story.does}
    """
    stall, stderr = crashed(place, program, LOOPCANARY_KEEPER="0")
    assert (stall.state, stall.confidence) == (StallState.CRASHED, 1.0)
    assert (stall.scope, stall.culprit and stall.culprit.source) == (story.scope, story.line)
    assert stall.thread == story.thread or not story.thread
    assert stall.title.startswith("crashed: stack overflow (" if story.is_stack_over else "crashed: SIGSEGV")
    assert stall.killed_by is not None
    assert stall.killed_by.signal == "SIGSEGV"
    assert (", whose stack has run over" in (stall.killed_by.reason or "")) == story.is_stack_over
    assert "MainThread" in {one.name for one in stall.threads}
    assert ("Segmentation fault" in stderr) == bool(reporter)


@pytest.mark.parametrize(
    "env", [{}, {"PYTHONFAULTHANDLER": "1"}], ids=["", "a crash reporter from the start"]
)
def test_a_keeper_has_a_crash_beside_a_loop(place: Place, env: dict[str, str]):
    program = "asyncio.run(in_a_thread(recurse))\n"
    stall, stderr = crashed(place, f"\n    {program}", LOOPCANARY_KEEPER="1", **env)
    assert stall.thread == "worker"
    assert ("Segmentation fault" in stderr) == bool(env)


SURVIVES = """
    HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype, libc.mmap.argtypes = pointer, [pointer, size, number, number, number, ctypes.c_long]
    libc.mprotect.argtypes = [pointer, size, number]
    address = libc.mmap(None, 4096, 0, 0x22, -1, 0)

    @HANDLER
    def open_page(_):
        libc.mprotect(address, 4096, 3)  # the instruction, which is run again, goes through

    libc.signal(signal.SIGSEGV, open_page)
    import loopcanary
    loopcanary.install()
    asyncio.run(asyncio.sleep(0))
    ctypes.c_char.from_address(address).value = b"x"
    assert ctypes.string_at(address, 1) == b"x"
"""


@pytest.mark.parametrize("end", [0, -signal.SIGKILL], ids=["ends well", "is killed later"])
def test_a_fault_that_the_program_survives_is_no_crash(place: Place, end: int):
    program = "\n    import ctypes, signal\n    libc = ctypes.CDLL(None)\n" + SURVIVES
    if end:
        program += "\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    place.run(place.program(program), status=end, LOOPCANARY_SIGNALS="segv")
    assert [one for one in place.stalls() if one.cause is Cause.CRASH or one.killed_by] == []
