"""`signals`: who has ended a program in a stall; and the program's signals are as without it."""

from __future__ import annotations

import re
import signal

import pytest

from loopcanary.model import KilledBy, Stall, StallState

from .watching import PATIENT_SIGNALS, PRELUDE, Place

pytestmark = pytest.mark.native

PATIENTLY = PATIENT_SIGNALS + PRELUDE
SENT = """
    import re, signal, subprocess

    SENDER = '''
    import os, sys
    for line in sys.stdin:
        os.kill(int(line), signal_number)
        print(flush=True)
    '''

    def sender(number):
        words = [sys.executable, "-S", "-c", SENDER.replace("signal_number", str(int(number)))]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def told(other):
        other.stdin.write(f"{os.getpid()}\\n")
        other.stdin.flush()

    # Compiled before: faulthandler may crash where the signal comes in the middle of Python code.
    endless = re.compile(r"(a+)+$")

    def hang():
        block("hang", 0.5)  # it is a stall, and in the watchdog's hands
        told(killer)
        endless.match("a" * 60 + "b")  # holds the GIL for longer than anybody waits

    async def main():
        samples()  # loads what it needs, which is no part of the block
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(hang)
        await asyncio.sleep(60)
"""
BEFORE = {
    "nothing for it": ("SIGQUIT", ""),
    "a crash reporter": ("SIGABRT", "import faulthandler; faulthandler.enable()"),
    "C code that chains": (
        "SIGUSR1",
        "import faulthandler; faulthandler.register(signal.SIGUSR1, chain=True)",
    ),
}


def killed(place: Place) -> tuple[Stall, KilledBy]:
    (stall,) = [one for one in place.stalls() if one.state.is_of_process]
    assert stall.killed_by is not None
    return stall, stall.killed_by


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("is_first", [True, False], ids=["set before", "set later"])
def test_who_ended_it_and_what_all_threads_did(place: Place, before: str, is_first: bool):
    name, does = BEFORE[before]
    first, later = (does, "") if is_first else ("", does)
    rest = f"""
    {first}
    asyncio.run(asyncio.sleep(0))
    {later}
    killer = sender(signal.{name})
    threading.Thread(target=threading.Event().wait, name="other", daemon=True).start()
    asyncio.run(main())
    """
    done = place.run(
        place.program(SENT + rest, prelude=PATIENTLY),
        status=-signal.Signals[name],
        LOOPCANARY_SIGNALS=name,
        LOOPCANARY_KEEPER="0",
    )
    assert ("Current thread" in done.stderr) == bool(does)
    stall, by = killed(place)
    assert (by.signal, by.reason) == (name, None)
    assert by.command is not None
    assert "import os, sys" in by.command
    assert stall.culprit is not None
    assert stall.culprit.function == "hang"
    assert {"MainThread", "other"} <= {one.name for one in stall.threads}


def test_what_a_handler_took_came_before_the_end(place: Place):
    rest = """
    signal.signal(signal.SIGTERM, lambda *_: None)
    killer = sender(signal.SIGTERM)

    def hang():
        block("hang", 0.5)
        told(killer)
        killer.stdout.readline()
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
    """
    place.run(
        place.program(SENT + rest, prelude=PATIENTLY),
        status=-signal.SIGKILL,
        LOOPCANARY_SIGNALS="term",
        LOOPCANARY_KEEPER="0",
    )
    _, by = killed(place)
    assert by.signal is None
    assert by.reason is not None
    assert by.reason.startswith("SIGTERM came before, from ")


@pytest.mark.parametrize("keeper", ["0", "1"], ids=["in process", "keeper"])
def test_a_stall_that_a_handler_ends_says_who_sent_the_signal(place: Place, keeper: str):
    """As gunicorn's sync workers do: their handler exits."""
    rest = """
    signal.signal(signal.SIGABRT, lambda *_: sys.exit(3))
    killer = sender(signal.SIGABRT)

    def hang():
        block("hang", 0.5)
        told(killer)
        time.sleep(60)  # until the handler ends it

    asyncio.run(main())
    """
    program = place.program(SENT + rest, prelude=PATIENTLY)
    place.run(program, status=3, LOOPCANARY_SIGNALS="abrt", LOOPCANARY_KEEPER=keeper)
    (stall,) = [one for one in place.stalls() if one.culprit and one.culprit.function == "hang"]
    assert stall.state is StallState.ENDED
    assert stall.killed_by is not None
    assert stall.killed_by.signal is None
    assert stall.killed_by.reason is not None
    said = r"SIGABRT came [0-9.]+ (ms|us|s) before its end, from .*import os, sys"
    assert re.match(said, stall.killed_by.reason, re.DOTALL)


FAULT = """
    import ctypes, signal
    {before}

    def crash():
        {first}
        ctypes.string_at(1)

    async def main():
        threading.Thread(target=threading.Event().wait, name="other", daemon=True).start()
        asyncio.get_running_loop().call_soon(crash)
        await asyncio.sleep(60)

    asyncio.run(main())
"""


@pytest.mark.parametrize("keeper", ["0", "1"], ids=["in process", "keeper"])
@pytest.mark.parametrize(
    "before", ["", "import faulthandler; faulthandler.enable()"], ids=["nothing for it", "a crash reporter"]
)
def test_a_fault_leaves_its_line_and_all_threads(place: Place, keeper: str, before: str):
    """It comes in no stall: the callback has just begun."""
    done = place.run(
        place.program(FAULT.format(before=before, first=""), prelude=PATIENTLY),
        status=-signal.SIGSEGV,
        LOOPCANARY_SIGNALS="segv",
        LOOPCANARY_KEEPER=keeper,
    )
    assert ("Segmentation fault" in done.stderr) == bool(before)
    stall, by = killed(place)
    assert by.signal == "SIGSEGV"
    assert by.reason == f"a fault of the program itself, in thread {stall.pid}"
    assert stall.culprit is not None
    assert (stall.culprit.function, stall.culprit.source) == ("crash", "ctypes.string_at(1)")
    assert {"MainThread", "other"} <= {one.name for one in stall.threads}


def test_a_fault_after_long_work_leaves_its_own_line(place: Place):
    first = "end = time.monotonic() + 0.3; any(time.monotonic() > end for _ in iter(int, 1))"
    program = place.program(FAULT.format(before="", first=first), prelude=PATIENTLY)
    place.run(program, status=-signal.SIGSEGV, LOOPCANARY_SIGNALS="segv")
    stall, _ = killed(place)
    assert stall.duration_ns > 250_000_000
    assert stall.culprit is not None
    assert stall.culprit.source == "ctypes.string_at(1)"


AS_WITHOUT = """
    import signal, subprocess, loopcanary
    came = []

    def note(number, frame):
        came.append(number)

    def caught():
        (line,) = [line for line in open("/proc/self/status") if line.startswith("SigCgt:")]
        return {number for number in signal.valid_signals() if int(line.split()[1], 16) >> (number - 1) & 1}

    before = caught()
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    loopcanary.install()
    asyncio.run(asyncio.sleep(0))
    assert caught() - before == {signal.SIGTERM, signal.SIGUSR1}, caught()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    os.kill(os.getpid(), signal.SIGHUP)

    assert signal.signal(signal.SIGTERM, note) is signal.SIG_DFL
    os.kill(os.getpid(), signal.SIGTERM)
    assert came == [signal.SIGTERM]

    async def serve():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, stop.set)
        os.kill(os.getpid(), signal.SIGUSR1)
        await stop.wait()

    asyncio.run(serve())
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    asks = "from signal import *; print(*(int(getsignal(one)) for one in (SIGTERM, SIGUSR1, SIGHUP)))"
    words = [sys.executable, "-S", "-c", asks]
    assert subprocess.run(words, env={}, capture_output=True, check=True).stdout.split() == [b"0", b"0", b"1"]
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        assert came == [signal.SIGTERM] * 2
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
    loopcanary.uninstall()
    assert caught() - before == {signal.SIGTERM}, caught()
    os.kill(os.getpid(), signal.SIGTERM)
    assert came == [signal.SIGTERM] * 2
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert caught() == before
    print("as without")
"""


def test_the_programs_signals_are_as_without_it(place: Place):
    program = place.program(AS_WITHOUT)
    done = place.run(program, LOOPCANARY_SIGNALS="SIGTERM,SIGUSR1,SIGHUP")
    assert done.stdout == "as without\n"


def test_the_portable_engine_says_that_it_notes_none(place: Place):
    program = "asyncio.run(asyncio.sleep(0))"
    done = place.run(
        place.program(program),
        LOOPCANARY_SIGNALS="TERM",
        LOOPCANARY_ENGINE="portable",
        LOOPCANARY_KEEPER="0",
    )
    assert "loopcanary: signals needs the native engine: their senders are not recorded" in done.stderr
