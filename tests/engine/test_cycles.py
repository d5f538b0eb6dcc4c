"""install() and uninstall() leave nothing behind, however often."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.native

_COUNT = """
    import atexit, gc, re, selectors, time
    import loopcanary
    from asyncio import base_events, events

    def threads():
        # One that was joined may still be on its way out of the kernel's list.
        gives_up = time.monotonic() + 60
        while len(os.listdir("/proc/self/task")) > threading.active_count() and time.monotonic() < gives_up:
            time.sleep(0.001)
        return len(os.listdir("/proc/self/task"))

    def held():
        gc.collect()
        maps = [line.split()[-1] for line in open("/proc/self/maps") if "/" in line]
        return {
            "threads": threads(),
            "descriptors": sorted(os.path.realpath(entry) for entry in os.scandir("/proc/self/fd")),
            "flight files": [name for name in maps if "flight" in name],
            "mappings": len(open("/proc/self/maps").readlines()),
            "patches": [events.Handle.__dict__["_run"], base_events.BaseEventLoop.__dict__["run_forever"]],
            "collections": list(gc.callbacks),
            "imports": list(sys.meta_path),
            "at exit": atexit._ncallbacks(),
            "environment": {name for name in os.environ if name.startswith("LOOPCANARY")},
        }

    def resident_kb():
        return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])

    def cycle():
        loopcanary.install(store=sys.argv[1], threshold="1s")
        loopcanary.uninstall()

    def differences(before, after):
        found = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
        # The allocator's arenas and a thread's stack may come and go.
        count, now = found.pop("mappings", (0, 0))
        assert now - count < 40, (count, now)
        return found
"""


# `make test-all` goes on until a rare race or a slow leak has its chance.
TIMES = 4 if os.environ.get("LOOPCANARY_FULL") == "1" else 1
# Two kilobytes a time, and the first times' megabyte. What was freed stays with the address sanitizer for a
# while, to be told from what is in use.
MAY_GROW_KB = 400_000 if os.environ.get("LOOPCANARY_TEST_SANITIZE") else 1_500 + 500 * TIMES


def run(place, text: str) -> None:
    program = place.program(_COUNT + text)
    environment = {name: "" for name in place.environment() if name.startswith("LOOPCANARY")}
    place.run(program, place.store, **{**environment, "LOOPCANARY": ""})


def test_250_times(place):
    run(
        place,
        f"""
    for _ in range(60):
        cycle()
    before, kb = held(), resident_kb()
    for _ in range({250 * TIMES}):
        cycle()
    assert not differences(before, held()), differences(before, held())
    assert resident_kb() - kb < {MAY_GROW_KB}, (kb, resident_kb())
    """,
    )


def test_the_first_time_too(place):
    run(
        place,
        """
    before = held()
    cycle()
    after = held()
    # One for the end of the process, which is not taken back: it finds nothing to do.
    assert after.pop("at exit") - before.pop("at exit") == 1
    # What was imported has mappings of its own.
    del before["mappings"], after["mappings"]
    assert not differences(before, after), differences(before, after)
    """,
    )


def test_while_a_loop_runs_in_another_thread(place):
    run(
        place,
        f"""
    loops, over = [], threading.Event()

    def elsewhere():
        async def main():
            loops.append(asyncio.get_running_loop())
            loops.append(asyncio.Event())
            began.set()
            while not over.is_set():
                await asyncio.sleep(0)
        asyncio.run(main())

    began = threading.Event()
    thread = threading.Thread(target=elsewhere, daemon=True)
    thread.start()
    began.wait()
    for _ in range(10):
        cycle()
    before = held()
    for _ in range({100 * TIMES}):
        cycle()
    assert not differences(before, held()), differences(before, held())
    assert "select" not in vars(loops[0]._selector)
    over.set()
    thread.join()
    """,
    )


def test_in_a_child_whose_parent_waits_in_another_thread(place):
    """The waiting thread is not there; that it stored to its lane keeps no memory of the child's engines."""
    run(
        place,
        """
    def address_space_mb():
        return int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024

    def cycle_with_a_loop():
        loopcanary.install(store=sys.argv[1], threshold="1s")
        asyncio.run(asyncio.sleep(0))
        loopcanary.uninstall()

    def turns():
        return sum(loop.turns for loop in canary.loops())

    def elsewhere():
        async def main():
            began.append(turns())
            await asyncio.Event().wait()
        asyncio.run(main())

    began = []
    canary = loopcanary.install(store=sys.argv[1], threshold="1s")
    threading.Thread(target=elsewhere, daemon=True).start()
    while not began or turns() == began[0]:
        time.sleep(0.001)
    pid = os.fork()
    if pid == 0:
        loopcanary.uninstall()
        for _ in range(10):
            cycle_with_a_loop()
        before = address_space_mb()
        for _ in range(30):
            cycle_with_a_loop()
        assert address_space_mb() - before < 80, (before, address_space_mb())
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    os._exit(0)
    """,
    )


def test_from_inside_callbacks(place):
    run(
        place,
        f"""
    async def main():
        loop = asyncio.get_running_loop()
        for _ in range(10):
            cycle()
            await asyncio.sleep(0)
        before = held()
        for number in range({100 * TIMES}):
            if number % 3:
                cycle()
            else:
                loopcanary.install(store=sys.argv[1])
                await asyncio.sleep(0)
                loopcanary.uninstall()
            await asyncio.sleep(0)
        assert not differences(before, held()), differences(before, held())
        assert "select" not in vars(loop._selector)
    asyncio.run(main())
    """,
    )


def test_ended_by_several_threads_at_once(place):
    """The drain ends itself, and others stop waiting for it: a thread is joined once."""
    run(
        place,
        """
    from loopcanary import _native
    for _ in range(200):
        loopcanary.install(store=sys.argv[1], threshold="1s")
        at_once = threading.Barrier(4)
        def end():
            at_once.wait()
            _native.stop(True, 60.0)
        threads = [threading.Thread(target=end) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not _native.is_running()
        loopcanary.uninstall()
    """,
    )


def test_ended_while_other_threads_fork(place):
    """What a fork starts again beside the end is ended too, before its memory is given back."""
    run(
        place,
        """
    from loopcanary import _native
    sys.setswitchinterval(1e-5)
    for _ in range(100):
        loopcanary.install(store=sys.argv[1], threshold="1s")
        asyncio.run(asyncio.sleep(0))
        assert _native.is_running()
        at_once = threading.Barrier(4)
        def end():
            at_once.wait()
            _native.stop(True, 60.0)
        def fork():
            at_once.wait()
            for _ in range(4):
                _native.pause(60.0)
                _native.resume()
        threads = [threading.Thread(target=work) for work in (end, fork, fork, fork)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not _native.is_running()
        loopcanary.uninstall()
    """,
    )
