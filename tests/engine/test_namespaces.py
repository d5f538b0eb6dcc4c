"""The main thread enters other namespaces: our threads rest meanwhile (docs/decisions/0004-fork.md)."""

from __future__ import annotations

import os

import pytest

from .watching import PATIENT_FORKS, PRELUDE

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not hasattr(os, "unshare"), reason="os.unshare is there from Python 3.12 on"),
]

_OURS = """
    import errno

    def ours():
        return {*os.listdir("/proc/self/task")} - {str(os.getpid())}

    def enter(call, *arguments):
        try:
            call(*arguments)
        except OSError as error:
            if error.errno in (errno.EPERM, errno.ENOSYS):
                print("refused")
                sys.exit()
            raise
"""
_PATIENTLY = PRELUDE + PATIENT_FORKS


def played(place, text, **variables):
    done = place.run(place.program(_OURS + text, prelude=_PATIENTLY), **variables)
    if done.stdout == "refused\n":
        pytest.skip("no new user namespace may be made here")
    return done.stdout


@pytest.mark.parametrize("keeper", ["1", "0"], ids=["kept", "in the program"])
@pytest.mark.parametrize("flags", ["os.CLONE_NEWUSER", "os.CLONE_VM | os.CLONE_SIGHAND"])
def test_a_program_of_one_thread_unshares_what_only_it_may(place, keeper, flags):
    played(
        place,
        f"""
    stall("before")
    were = ours()
    enter(os.unshare, {flags})
    assert ours() and not ours() & were
    stall("after")
    pid = os.fork()
    if pid == 0:
        stall("child")
        sys.exit()
    assert os.waitpid(pid, 0)[1] == 0
    """,
        LOOPCANARY_KEEPER=keeper,
    )
    assert place.culprits() == ["after", "before", "child"]


def test_a_program_joins_the_user_namespace_of_a_child(place):
    played(
        place,
        """
    ready, go_on = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        enter(os.unshare, os.CLONE_NEWUSER)
        os.write(ready[1], b"x")
        os.read(go_on[0], 1)
        os._exit(0)
    os.close(ready[1])
    if not os.read(ready[0], 1):
        sys.exit()  # the child has said it
    stall("before")
    enter(os.setns, os.open(f"/proc/{pid}/ns/user", os.O_RDONLY), os.CLONE_NEWUSER)
    assert ours()
    stall("after")
    os.write(go_on[1], b"x")
    """,
    )
    assert place.culprits() == ["after", "before"]


def test_a_stall_goes_on_over_a_call(place):
    played(
        place,
        """
    async def main():
        await asyncio.sleep(0)
        unshares()

    def unshares():
        enter(os.unshare, os.CLONE_NEWUSER)
        block("stalled", 0.3)

    asyncio.run(main())
    """,
    )
    assert place.culprits() == ["stalled"]


def test_another_thread_enters_for_itself_alone(place):
    played(
        place,
        """
    async def main():
        await asyncio.sleep(0)
        were = ours()
        await asyncio.to_thread(enter, os.unshare, 0)
        assert were and were < ours()

    asyncio.run(main())
    """,
        LOOPCANARY_THRESHOLD="1h",  # after a stall there is one more thread, for some seconds
    )


def test_the_functions_look_and_fail_as_before_and_come_back(place):
    """Prints what differs from the originals: nothing."""
    told = played(
        place,
        """
    import inspect, traceback

    originals = os.unshare, os.setns

    def look(function):
        facts = [getattr(function, "__" + name + "__") for name in ("name", "qualname", "doc", "module")]
        facts.append(inspect.signature(function))
        for arguments in ((), ("x",), (-1,), (-1, -1)):
            try:
                facts.append(function(*arguments))
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                facts.append((type(error), error.args, [one.name for one in frames]))
        return facts

    before = [look(one) for one in originals]
    asyncio.run(asyncio.sleep(0))
    patched = os.unshare, os.setns
    assert all("loopcanary" in repr(one) for one in patched), patched
    for one, as_before in zip(patched, before):
        if look(one) != as_before:
            print(look(one), as_before)
    assert ours()

    import loopcanary
    os.setns = another = lambda *arguments: patched[1](*arguments)
    loopcanary.uninstall()
    assert os.unshare is originals[0] and os.setns is another
    if look(patched[0]) != before[0]:
        print(look(patched[0]), before[0])
    """,
    )
    assert told == ""
