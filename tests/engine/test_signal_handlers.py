"""What the program's own handler of a signal raises reaches the program, also where Python calls the handler
in the middle of our code."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.native

HANDLER = """
import signal
class Timeout(TimeoutError): pass
def handler(*_):
    raise Timeout("of the program")
signal.signal(signal.SIGALRM, handler)
from loopcanary.engine.recorder import Recorder
from loopcanary.probes.asyncio import AsyncioProbe
rings_at = 1
def ring(*_, **__):
    # In the place of our code: the signal comes at one of its calls.
    global rings_at
    rings_at -= 1
    if rings_at == 0:
        signal.raise_signal(signal.SIGALRM)
"""
RUN = """
try:
    import asyncio, loopcanary
    loopcanary.install()
    asyncio.run(asyncio.sleep(0))
except Timeout as error:
    print("raised", error)
assert rings_at <= 0
asyncio.run(asyncio.sleep(0))
from loopcanary import _native
assert not _native.is_running() or loopcanary.install()._engine is not None
"""
PLACES = {
    "a probe is installed": "AsyncioProbe.install = ring",
    "C code has the engine started": "Recorder.record = ring",
    "facts are noted": "Recorder.set_facts = ring; rings_at = 2",
    "facts are read": "import os; os.getppid = ring",
    "a line is shown": """
import logging
logging.Handler.handle = ring
logging.basicConfig()
AsyncioProbe.install = None""",
    "the watchdog has been started": """
from loopcanary import _native
def start(start=_native.start, **settings):
    start(**settings)
    ring()
_native.start = start""",
}
PORTABLE = {
    "a turn begins": "from loopcanary.portable.lane import Lane; Lane.begin = ring",
    "a turn ends": "from loopcanary.portable.lane import Lane; Lane.end = ring",
}


@pytest.mark.parametrize("text", PLACES.values(), ids=PLACES)
def test_raised_while(place, text):
    done = place.run(place.program(HANDLER + text + RUN, prelude=""), LOOPCANARY="")
    assert (done.stdout, done.stderr) == ("raised of the program\n", "")


@pytest.mark.parametrize("text", PORTABLE.values(), ids=PORTABLE)
def test_raised_in_the_portable_engine_while(place, text):
    program = place.program(HANDLER + text + RUN, prelude="")
    done = place.run(program, LOOPCANARY="", LOOPCANARY_ENGINE="portable")
    assert done.stdout == "raised of the program\n"


def test_raised_while_an_import_starts_loopcanary(place):
    text = """
import loopcanary
loopcanary.install = ring
try:
    import asyncio
except Timeout as error:
    print("raised", error)
"""
    assert place.run(place.program(HANDLER + text, prelude="")).stdout == "raised of the program\n"


def test_raised_in_what_c_code_calls(place):
    program = place.program(
        HANDLER
        + """
from loopcanary import _native, whose_exception
def fails(*_):
    raise LookupError("of ours")
assert _native.followed(len, fails)("abc") == 3
for after in (ring, lambda _: sys.exit("of the program")):
    try:
        _native.followed(len, after)("abc")
    except (Timeout, SystemExit) as error:
        print(error)
"""
    )
    assert place.run(program).stdout == "of the program\n" * 2


def test_an_interrupt_that_comes_as_we_ask_whose_an_exception_is(place):
    program = place.program(
        """
import signal
from loopcanary import _native, whose_exception
whose_exception.is_of_handler = lambda _: signal.raise_signal(signal.SIGINT)
class Group(_native.TrioGroup):
    data = {}
def fails(_):
    raise LookupError("of ours")
group = Group()
group.open_lane(fails)
try:
    group.call("before_run")
    for _ in range(3):
        pass
except KeyboardInterrupt:
    print("interrupted")
""",
        prelude="",
    )
    assert place.run(program).stdout == "interrupted\n"
