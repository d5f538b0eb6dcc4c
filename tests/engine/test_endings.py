"""Ends of a process that no exit handler sees."""

from __future__ import annotations

import pytest

from loopcanary.model import SessionEnd, StallState

from .watching import Place, is_block

ENDS = {
    "os._exit": ("os._exit(3)", 3),
    "exec": ("os.execv(sys.executable, [sys.executable, '-Sc', 'raise SystemExit(3)'])", 3),
    "exec by name": ("os.execlp(sys.executable, sys.executable, '-Sc', 'raise SystemExit(3)')", 3),
}


@pytest.mark.parametrize(("end", "status"), ENDS.values(), ids=ENDS)
def test_a_process_that_ends_itself_was_not_killed(place: Place, end: str, status: int) -> None:
    program = place.program(f"""
        async def main():
            samples()  # loads what it needs, which is no part of the block
            await asyncio.sleep(0)
            block("last")
            {end}
        asyncio.run(main())
    """)
    place.run(program, status=status)
    [stall] = filter(is_block, place.stalls())
    assert stall.state is StallState.ENDED
    assert {session.end for session in place.sessions().values()} == {SessionEnd.EXIT}


def test_a_kill_after_an_exec_that_failed_is_a_kill(place: Place) -> None:
    program = place.program("""
        async def main():
            await asyncio.sleep(0)
            try:
                os.execv("/nowhere", ["nowhere"])
            except OSError:
                os.kill(os.getpid(), 9)
        asyncio.run(main())
    """)
    place.run(program, status=-9)
    [session] = place.sessions().values()
    assert session.end is SessionEnd.KILLED


def test_what_ends_a_process_is_given_back(place: Place) -> None:
    program = place.program("""
        before = os._exit, os.execv, os.execve
        import loopcanary
        asyncio.run(asyncio.sleep(0))
        assert os._exit is not before[0]
        loopcanary.uninstall()
        assert (os._exit, os.execv, os.execve) == before
    """)
    place.run(program)
