"""Loops in many threads: a lane each, given back with the thread."""

from __future__ import annotations

import json
import re

import pytest

from .watching import PATIENT_FORKS, PRELUDE

pytestmark = pytest.mark.native

_MANY = """
    import json, loopcanary
    canary = loopcanary.install(stalls_per_minute=100_000)
    threading.stack_size(256 * 1024)
    all_run = threading.Barrier(64)

    def waiting():
        counts = canary.statistics()
        return counts["stalls_recorded"] - counts.get("stalls_reported", 0)
    turn = threading.Semaphore(4)

    async def main():
        await asyncio.sleep(0)
        time.sleep(0.12)

    def work():
        loop = asyncio.SelectorEventLoop()
        # Few at a time: sixteen stalls fit into the flight file at once, and the drain has to get to run. Any
        # turn may be one on a busy machine.
        with turn:
            loop.run_until_complete(asyncio.sleep(0))
        all_run.wait()
        with turn:
            while waiting() > 4:
                time.sleep(0.02)
            loop.run_until_complete(main())
        loop.close()

    threads = [threading.Thread(target=work, name=f"worker-{n}") for n in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
_TELL = """
    statistics = canary.statistics()
    names = [loop.thread for loop in canary.loops()]
    loopcanary.uninstall()
    print(json.dumps({"statistics": statistics, "loops": names}))
"""


def test_64_loops_in_64_threads(place):
    program = place.program(_MANY + _TELL)
    # 64 stalls at once: a keeper that has still to start has 16 of them.
    told = json.loads(place.run(program, LOOPCANARY_KEEPER="0").stdout)
    assert sorted(told["loops"]) == sorted(f"worker-{n}" for n in range(64))
    assert told["statistics"]["lanes_refused"] == 0
    assert told["statistics"]["stalls_dropped_no_slot"] == 0
    assert {stall.thread for stall in place.stalls()} == set(told["loops"])


def test_more_threads_than_lanes_are_counted(place):
    program = place.program(
        """
    import json, loopcanary
    canary = loopcanary.install()
    threading.stack_size(256 * 1024)
    all_run = threading.Barrier(300)

    def work():
        loop = asyncio.SelectorEventLoop()
        loop.run_until_complete(asyncio.sleep(0))
        all_run.wait()
        loop.close()

    threads = [threading.Thread(target=work) for _ in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    """
        + _TELL
    )
    told = json.loads(place.run(program).stdout)
    assert len(told["loops"]) == 256
    assert told["statistics"]["lanes_refused"] == 44


def test_lanes_of_ended_threads_are_used_again(place):
    program = place.program(
        """
    import json, loopcanary
    canary = loopcanary.install()

    def work():
        loop = asyncio.SelectorEventLoop()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    for n in range(600):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    last = threading.Thread(target=stall, args=["last"], name="the last")
    last.start()
    last.join()
    """
        + _TELL
    )
    told = json.loads(place.run(program).stdout)
    assert told["statistics"]["lanes_refused"] == 0
    assert len(told["loops"]) == 256
    stalls = place.stalls()
    last = [stall for stall in stalls if stall.culprit and stall.culprit.function == "last"]
    assert [stall.thread for stall in last] == ["the last"], stalls


@pytest.mark.parametrize("keeper", ["0", "1"])
def test_who_changed_a_threads_priority_is_in_session_and_stall(place, keeper):
    program = place.program("""
        def lower():
            os.nice(3)
            os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
            os.setpriority(which=os.PRIO_PROCESS, who=0, priority=19)
            try:
                os.nice("much")
            except TypeError:
                pass  # nothing was changed

        async def main():
            await asyncio.sleep(0)
            lower()
            await asyncio.sleep(0)
            block("walk", 0.2)
            print(lower.__code__.co_firstlineno, threading.get_native_id(), repr(os.nice).count("around"))

        asyncio.run(main())
        import loopcanary
        loopcanary.uninstall()
        print(repr(os.nice).count("around"))
    """)
    first, tid, *patched = map(int, place.run(program, LOOPCANARY_KEEPER=keeper).stdout.split())
    assert patched == [1, 0]
    [session] = place.sessions().values()
    [core] = re.findall(r"\[(\d+)\]", session.priority_changes[1].call)
    assert [(one.call, one.line - first) for one in session.priority_changes] == [
        ("os.nice(3)", 1),
        (f"os.sched_setaffinity(0, [{core}])", 2),
        ("os.setpriority(which=0, who=0, priority=19)", 3),
    ]
    assert {(one.function, one.file, one.tid) for one in session.priority_changes} == {
        ("lower", str(program), tid)
    }
    *_, stall = place.stalls()  # without a core for long before the block, the culprit is what called it
    assert (stall.surroundings.nice, stall.surroundings.policy, stall.surroundings.cores) == (19, "other", 1)


def test_changes_of_the_parent_are_not_its_childs(place):
    program = place.program(
        """
        async def main():
            await asyncio.sleep(0)
            os.nice(1)

        asyncio.run(main())
        child = os.fork()
        if child == 0:
            stall("child")
            sys.exit()
        os.wait()
        print(child)
        """,
        prelude=PRELUDE + PATIENT_FORKS,
    )
    child = int(place.run(program).stdout)
    changes = {pid: len(session.priority_changes) for pid, session in place.sessions().items()}
    assert changes.pop(child) == 0
    assert [*changes.values()] == [1]
