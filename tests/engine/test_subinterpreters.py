"""Subinterpreters are left alone: patches, threads and signals are the process's."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.native

_OWN_GIL = pytest.mark.skipif(
    sys.version_info[:2] == (3, 12), reason="this CPython crashes beside any other thread, also unwatched"
)
_WITHIN = """
import asyncio
asyncio.run(asyncio.sleep(0))
import loopcanary
assert loopcanary.install() is None
asyncio.run(asyncio.sleep(0))
loopcanary.uninstall()
"""
_RUN = f"""
    stall("before")
    if sys.version_info >= (3, 13):
        import _interpreters
        other = _interpreters.create(sys.argv[1])
        assert _interpreters.exec(other, {_WITHIN!r}) is None
        _interpreters.destroy(other)
    else:
        import _xxsubinterpreters
        other = _xxsubinterpreters.create(isolated=sys.argv[1] == "isolated")
        _xxsubinterpreters.run_string(other, {_WITHIN!r})
        _xxsubinterpreters.destroy(other)
    stall("after")
"""


@pytest.mark.parametrize("engine", ["native", "portable"])
@pytest.mark.parametrize("kind", ["legacy", pytest.param("isolated", marks=_OWN_GIL)])
def test_a_subinterpreter_is_not_watched(place, kind, engine):
    done = place.run(place.program(_RUN), kind, LOOPCANARY_ENGINE=engine)
    assert done.stderr == "loopcanary: subinterpreters are not watched\n"
    assert place.culprits() == ["after", "before"]


_CREATE = """
    import importlib
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    interpreters = importlib.import_module(name)

    def create():
        kind = ("isolated",) if sys.version_info >= (3, 13) else ()
        return interpreters.create(*kind)  # before 3.13 that is isolated
"""
_LOOKS_ALWAYS = """
    from loopcanary.tracers.locks import watch
    watch._FIRST_S = watch.IDLE_S = watch._IDLE_SHARE = 0
    asyncio.run(asyncio.sleep(0))
    while not hasattr(asyncio.Lock.acquire, "__wrapped__"):
        time.sleep(0.01)  # the tracer is being loaded
"""
_LOOP_WITHIN = """
import asyncio, time

def deep(number):
    return number and deep(number - 1)

async def main():
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        deep(20)
        await asyncio.sleep(0)

asyncio.run(main())
"""
_BESIDE = f"""
    {_CREATE}
    def beside():
        for _ in range(5):
            other = create()
            interpreters.run_string(other, {_LOOP_WITHIN!r})
            interpreters.destroy(other)

    def deep(number):
        return number and deep(number - 1)

    async def works(outer, inner, lock):
        while any(thread.is_alive() for thread in threads):
            with outer, inner:
                deep(20)
            async with lock:
                await asyncio.sleep(0)

    async def main():
        one, two, lock = threading.Lock(), threading.RLock(), asyncio.Lock()
        await asyncio.gather(works(one, two, lock), works(one, two, lock))

    threads = [threading.Thread(target=beside) for _ in range(3)]
    for thread in threads:
        thread.start()
    asyncio.run(main())
    print("over")
"""


_MANY = pytest.mark.skipif(
    sys.version_info < (3, 13), reason="before 3.12 one GIL is for all, and 3.12 crashes also unwatched"
)


@_MANY
@pytest.mark.parametrize("setting", ["LOCKS=1", "METHODS=.", "SIGNALS=TERM,SEGV", "STARTUP=1", "WINDOWS=1s"])
def test_a_tracer_does_no_harm_beside_other_interpreters(place, setting):
    name, _, value = setting.partition("=")
    program = place.program((_LOOKS_ALWAYS if name == "LOCKS" else "") + _BESIDE)
    assert place.run(program, **{f"LOOPCANARY_{name}": value}).stdout == "over\n"


@_OWN_GIL
def test_a_deadlock_is_found_when_other_interpreters_are_gone(place):
    program = place.program(f"""
    {_CREATE}
    {_LOOKS_ALWAYS}
    import loopcanary
    from loopcanary.tracers.locks import threads
    looks, makes = 0, threads.thread_frames

    def counted():
        global looks
        looks += 1
        return makes()

    threads.thread_frames = counted

    @loopcanary.on_issue
    def told(issue):
        if issue.kind.value == "deadlock":
            print(looks_beside >= 4, [wait.is_thread for wait in issue.cycle].count(True), flush=True)
            os._exit(0)

    async def main():
        global looks_beside
        loop, lock = asyncio.get_running_loop(), asyncio.Lock()

        async def needs():
            async with lock:
                pass

        async def holds():
            async with lock:
                await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(needs(), loop).result())

        looks_beside, other = 0, create()
        task = asyncio.create_task(holds())
        while looks < 4:
            await asyncio.sleep(0.01)
        looks_beside = looks
        interpreters.destroy(other)
        await task

    asyncio.run(main())
    """)
    assert place.run(program, LOOPCANARY_LOCKS="1").stdout == "True 1\n"


def test_no_frames_are_made_beside_another_interpreter(place):
    """Its frames would be made with our allocator, and freed with its own."""
    program = place.program("""
        import importlib
        from loopcanary.thread_frames import thread_frames
        name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
        interpreters = importlib.import_module(name)
        seen = [len(thread_frames()) > 0]
        other = interpreters.create()
        seen.append(thread_frames())
        interpreters.destroy(other)
        seen.append(len(thread_frames()) > 0)
        print(seen)
    """)
    assert place.run(program).stdout == "[True, {}, True]\n"


@_MANY
def test_no_frames_are_made_while_another_interpreter_is_made(place):
    """A thread may get the GIL between any two lines, and make it."""
    program = place.program(f"""
    {_CREATE}
    from loopcanary.thread_frames import thread_frames

    def beside():
        while len(seen) < 2:  # a busy host may run the other thread only now and then
            other = create()
            interpreters.run_string(other, "for number in range(100_000): str(number)")
            interpreters.destroy(other)

    sys.setswitchinterval(0.0001)
    seen = set()
    thread = threading.Thread(target=beside)
    thread.start()
    while thread.is_alive():
        seen.add(bool(thread_frames()))
    print(seen)
    """)
    assert place.run(program).stdout == "{False, True}\n"
