"""A watched program is the same program: what it prints, how it ends, what it finds in its process."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from .watching import COUNTS_THREADS_LATE

pytestmark = pytest.mark.native

# Each stalls a loop first, so that the engine runs and has been at work.
PROGRAMS = {
    "an ordinary end": "print('out'); print('err', file=sys.stderr)",
    "status 3": "sys.exit(3)",
    "sys.exit(None)": "sys.exit(None)",
    "SystemExit with a message": "raise SystemExit('a message')",
    "an uncaught exception": "def fails():\n    return 1 / 0\nfails()",
    "an exception with a cause": "try:\n    {}[1]\nexcept KeyError as e:\n    raise ValueError('x') from e",
    "an exception in a callback": """
async def main():
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0.01)
asyncio.run(main())
""",
    "an exception of a task": """
async def fails():
    raise LookupError('in a task')
async def main():
    await asyncio.create_task(fails(), name='t')
asyncio.run(main())
""",
    "an exception in a thread": "t = threading.Thread(target=lambda: 1 / 0, name='t'); t.start(); t.join()",
    "os._exit": "os._exit(7)",
    "SIGINT, by default": "os.kill(os.getpid(), 2); time.sleep(60)",
    "SIGTERM, by default": "os.kill(os.getpid(), 15); time.sleep(60)",
    "SIGINT in a loop": """
async def main():
    os.kill(os.getpid(), 2)
    await asyncio.sleep(60)
asyncio.run(main())
""",
    "a handler of SIGTERM": """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
os.kill(os.getpid(), 15)
time.sleep(60)
""",
    "a handler of the loop's": """
async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    os.kill(os.getpid(), 15)
    await stop.wait()
    print('stopped')
asyncio.run(main())
""",
    "handlers and masks": """
print([signal.getsignal(number) for number in (2, 15, 17, 13, 14)], signal.pthread_sigmask(0, []))
print(signal.getitimer(signal.ITIMER_REAL), signal.set_wakeup_fd(-1))
""",
    "abort": "os.abort()",
    "stdin": "print(sys.stdin.read().upper())",
    "the depth of the stack": """
def depth(n=1):
    try:
        return depth(n + 1)
    except RecursionError:
        return n
print(sys.getrecursionlimit(), depth())
""",
    "threads": """
print(threading.active_count(), [thread.name for thread in threading.enumerate()])
print(threading._active.keys() == {threading.get_ident()}, sys.getswitchinterval())
""",
    "functions at exit": """
import atexit
atexit.register(print, 'first'); atexit.register(print, 'second'); print(atexit._ncallbacks() > 0)
""",
    "a thread that outlives main": """
threading.Thread(target=lambda: (threading.main_thread().join(), print('over'))).start()
""",
    "warnings": "import warnings; warnings.warn('here'); warnings.warn('old', DeprecationWarning)",
    "hooks": """
print(sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__)
print(sys.gettrace(), sys.getprofile(), sys.displayhook is sys.__displayhook__)
print(sys.unraisablehook is sys.__unraisablehook__, asyncio.get_event_loop_policy().__class__.__name__)
# While a library of loops may still come, one finder of ours is in front; nothing else may differ.
finders = [type(finder).__name__ for finder in sys.meta_path]
print(finders[finders[0] == "LoopcanaryFinder" :], len(sys.path_hooks))
""",
    "the event loop's exception handler": """
loop = asyncio.new_event_loop()
print(loop.get_exception_handler(), loop.get_debug(), loop.slow_callback_duration, loop.get_task_factory())
loop.close()
""",
    "what is left unread in a pipe": "sys.stdout.write('no end of line'); sys.stderr.write('none here')",
    "logging without settings": "import logging; logging.warning('w'); logging.info('i')",
}
PRELUDE = "import asyncio, os, signal, sys, threading, time\n"
# Where it is watched, until there is a sample of it.
STALL = """
async def _stalls():
    await asyncio.sleep(0)
    statistics = getattr(sys.modules.get("loopcanary"), "statistics", dict)
    before, began, slept = statistics().get("samples_taken"), time.monotonic(), 0.12
    time.sleep(0.12)
    # Asking takes long on a crowded machine, too: the sleep has most of the time.
    while before is not None and (statistics().get("samples_taken") < before + 3
                                  or slept < 0.8 * (time.monotonic() - began)):
        length = time.monotonic() - began
        time.sleep(length)
        slept += length
asyncio.run(_stalls())
"""
# Longer than what a crowded machine makes of a callback that does nothing.
CLEAR_THRESHOLD = "1h"


# As `loopcanary run` does, without its command line: the engine starts before the program.
AS_RUN = ["/bin/sh", "-c", 'LOOPCANARY_RUN_PID=$$ exec "$@"', "sh"]


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int
    out: bytes
    err: bytes


def both(place, *words: str | Path, **settings: str) -> tuple[Outcome, Outcome]:
    """As python runs it, and quietly watched."""
    quiet = place.environment(LOOPCANARY_CONSOLE="off", LOOPCANARY_DEBUG="", **settings)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, *map(str, words)]
    plain = subprocess.Popen(command, cwd=place.folder, env=place.plain(), **pipes)
    watched = subprocess.Popen([*AS_RUN, *command], cwd=place.folder, env=quiet, **pipes)
    outcomes = []
    for process in (plain, watched):
        out, err = process.communicate(b"given\n", timeout=280)
        outcomes.append(Outcome(process.returncode, out, err))
    return outcomes[0], outcomes[1]


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_it_does_and_ends_as_under_python(place, text):
    program = place.program(STALL + text, prelude=PRELUDE)
    plain, watched = both(place, program)
    assert watched == plain
    assert len(place.sessions()) == 1
    assert any(stall.culprit and stall.culprit.function == "_stalls" for stall in place.stalls())


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("os.kill(os.getpid(), 2); time.sleep(60)", -signal.SIGINT),
        ("try: os.kill(os.getpid(), 2); time.sleep(60)\nexcept KeyboardInterrupt: pass", 0),
        ("try: os.kill(os.getpid(), 2); time.sleep(60)\nexcept KeyboardInterrupt: 1 / 0", 1),
    ],
    ids=["not caught", "caught", "another error"],
)
def test_a_summary_leaves_an_interrupt_what_it_is(place, text, status):
    """What is loaded for it executes text, after which the interpreter forgets how it was ended."""
    program = place.program("asyncio.run(asyncio.sleep(0))\n" + text, prelude=PRELUDE)
    settings = place.environment(LOOPCANARY_CONSOLE="1")
    command = [*AS_RUN, sys.executable, str(program)]
    done = subprocess.run(command, env=settings, capture_output=True, timeout=280, check=False)
    assert b"[loopcanary] no stall" in done.stderr
    assert done.returncode == status


def test_a_signal_from_outside(place):
    program = place.program("""
        async def main():
            await asyncio.sleep(0)
            print("ready", flush=True)
            block("at_work", 60)
        asyncio.run(main())
    """)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        process = place.start(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait() == -number


FAIL_ON_STALL = {
    "0, with a stall": (STALL, 70),
    "0, without one": ("asyncio.run(asyncio.sleep(0))", 0),
    "sys.exit(0), with a stall": (STALL + "sys.exit(0)", 70),
    "3, with a stall": (STALL + "sys.exit(3)", 3),
    "an exception, with a stall": (STALL + "1 / 0", 1),
    "os._exit(0), with a stall": (STALL + "os._exit(0)", 0),
    "SIGTERM, with a stall": (STALL + "os.kill(os.getpid(), 15); time.sleep(60)", -15),
    "a forked child's stall": ("if os.fork():\n    os.wait()\nelse:\n    asyncio.run(asyncio.sleep(0))", 0),
}


@pytest.mark.parametrize(("text", "status"), FAIL_ON_STALL.values(), ids=FAIL_ON_STALL)
def test_fail_on_stall_changes_nothing_but_a_status_of_0(place, text, status):
    if COUNTS_THREADS_LATE and "fork" in text:
        pytest.skip("this CPython warns of our threads, when the fork hooks have run")
    program = place.program(text, prelude=PRELUDE)
    threshold = {} if STALL in text else {"LOOPCANARY_THRESHOLD": CLEAR_THRESHOLD}
    plain, watched = both(place, program, LOOPCANARY_FAIL_ON_STALL="1", **threshold)
    assert watched.status == status
    assert (watched.out, watched.err) == (plain.out, plain.err)


def test_fail_on_stall_lets_c_libraries_end_in_their_way(place):
    """What they do at exit is done once, also by those that were there before us."""
    program = place.program(
        """
import ctypes
libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
register = libc.__cxa_atexit
register.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
say = ctypes.cast(libc.puts, ctypes.c_void_p)
assert register(say, libc.strdup(b"registered before"), None) == 0
"""
        + STALL
        + "assert register(say, libc.strdup(b'registered after'), None) == 0",
        prelude=PRELUDE,
    )
    plain, watched = both(place, program, LOOPCANARY_FAIL_ON_STALL="1")
    assert plain.out == b"registered after\nregistered before\n"
    assert (watched.status, watched.out, watched.err) == (70, plain.out, plain.err)


def test_a_child_finds_no_descriptor_of_ours(place):
    other = place.program(
        """
        import json, os
        found = []
        for name in os.listdir("/proc/self/fd"):
            try:
                found.append(os.readlink(f"/proc/self/fd/{name}").partition(":")[0])
            except OSError:
                continue
        print(json.dumps(sorted(found)))
    """,
        name="other.py",
        prelude="",
    )
    program = place.program(
        STALL
        + f"""
import subprocess
os.set_inheritable(os.open("mine", os.O_RDWR | os.O_CREAT), True)
async def main():
    await asyncio.sleep(0)
    time.sleep(0.12)
    print(subprocess.run([sys.executable, "-S", {str(other)!r}], close_fds=False, env={{}},
                         stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL).stdout)
asyncio.run(main())
""",
        prelude=PRELUDE,
    )
    plain, watched = both(place, program)
    assert watched == plain


def test_the_program_has_the_descriptors_that_it_opens(place):
    """Numbers are given out in order: what we open must not lie among the program's."""
    program = place.program(
        STALL
        + """
print([os.dup(0) for _ in range(3)][0] >= 3)
assert not [n for n in range(3) if not os.path.exists(f"/proc/self/fd/{n}")]
""",
        prelude=PRELUDE,
    )
    plain, watched = both(place, program)
    assert watched == plain


def test_descriptors_stay_while_the_program_stalls_and_rests(place):
    """Leak tests count them (uvloop, gevent), before and after what they test."""
    program = place.program("""
        import loopcanary
        from pathlib import Path
        from loopcanary.flight import FlightFile

        def numbers():
            return sorted(int(name) for name in os.listdir("/proc/self/fd"))

        def is_storing():
            return any("loopcanary.db" in os.path.realpath(entry) for entry in os.scandir("/proc/self/fd"))

        def rest():
            (link,) = Path(os.environ["LOOPCANARY_STORE"], "flight").glob("*.flight")
            with FlightFile.open(link.resolve()) as flight:
                while not flight.header.parked:
                    time.sleep(0.01)
            return numbers()

        async def work():
            with loopcanary.expect("5m"):
                block("sampled", 0.02)
            await asyncio.sleep(0)
            return tuple(numbers())

        stall("before", 1.1)
        while not loopcanary.statistics().get("stalls_reported") or is_storing():
            time.sleep(0.01)
        before, samples_before = rest(), samples()
        seen = {asyncio.run(work()) for _ in range(20)}
        assert samples() >= samples_before + 20
        assert len(seen) == 1, seen
        assert rest() == before
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        assert {asyncio.run(work()) for _ in range(5)} == seen
        assert rest() == before
        assert [number for number in before if number < 64] == [0, 1, 2, 3], before  # 3: of the list itself
    """)
    place.run(program, LOOPCANARY_THRESHOLD="1s", LOOPCANARY_SAMPLE_DELAY="5ms")


def test_quiet_hides_our_own_failures(place):
    (place.folder / "store").write_text("a file where the store should be")
    program = place.program(STALL + "print('over')", prelude=PRELUDE)
    plain, watched = both(place, program)
    assert watched == plain
