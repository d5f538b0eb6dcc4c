"""Strict tests: what blocks the thread of a running loop raises at the call, before it blocks.

The interpreter calls its audit hooks (PEP 578) before it makes such calls, and a hook that raises
prevents the call. Nothing is patched but `time.sleep` before 3.13, from where on it has an event. What has
none (a read of a socket, a lock) is for the limits.

PYTEST_DONT_REWRITE: the hook is called from anywhere.
"""

from __future__ import annotations

import ipaddress
import sys
import time
from fnmatch import fnmatchcase
from functools import wraps
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from loopcanary.pytesting.limits import limit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_LOOPS = ("asyncio", "trio", "anyio", "uvloop", "_pytest", "pytest_asyncio", "pytest_trio", "loopcanary")
"""Packages whose own calls are theirs to answer for, and beyond which is no test."""
_IMPORTS = (
    "_frozen_importlib",
    "_frozen_importlib_external",
    "importlib",
    "linecache",
    "tokenize",
    "zipimport",
)
"""What opens files for imports and tracebacks, which are a stall of their own kind if they are long."""


class BlockingCallError(RuntimeError):
    """The call would have blocked the thread of a running loop."""


def _blocks(socket: Any, *_: object) -> bool:
    return bool(socket.gettimeout() != 0)


def _is_resolved(host: object, *_: object) -> bool:
    """Whether a name has to be asked for."""
    if not host:
        return False
    try:
        ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host))
    except ValueError:
        return True
    return False


def _always(*_: object) -> bool:
    return True


_JUDGED: dict[str, Callable[..., bool]] = {
    "builtins.input": _always,
    "fcntl.flock": lambda _descriptor, operation: not operation & 4,  # LOCK_NB
    "fcntl.lockf": lambda _descriptor, operation, *_: not operation & 4,
    "open": lambda path, *_: not isinstance(path, int),
    "os.listdir": _always,
    "os.scandir": _always,
    "os.system": _always,
    "shutil.copyfile": _always,
    "shutil.copytree": _always,
    "shutil.move": _always,
    "shutil.rmtree": _always,
    "socket.connect": _blocks,
    "socket.getaddrinfo": _is_resolved,
    "socket.gethostbyaddr": _always,
    "socket.gethostbyname": _is_resolved,
    "socket.sendmsg": _blocks,
    "socket.sendto": _blocks,
    "sqlite3.connect": lambda database, *_: database not in (":memory:", b":memory:"),
    "subprocess.Popen": _always,
    "time.sleep": lambda seconds, *_: seconds > 0,
    "urllib.Request": _always,
}
"""By audit event, whether these arguments make it block."""


class StrictTests:
    """Hooks of pytest, and the audit hook, which is there once for all tests of the process."""

    __test__ = False

    def __init__(self, *, is_default: bool) -> None:
        """`is_default`: also of tests whose marker does not say it."""
        self._is_default = is_default
        self._is_installed = False
        self._item: pytest.Item | None = None
        self._allow: tuple[str, ...] = ()
        self._raised: list[BlockingCallError] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        limit = limit_of(item, None)
        if not (self._is_default if limit.strict is None else limit.strict):
            return (yield)
        if not self._is_installed:
            self._is_installed = True
            sys.addaudithook(self._judge)
        self._raised.clear()
        self._allow, self._item = limit.allow, item
        sleep = time.sleep
        if sys.version_info < (3, 13):
            time.sleep = self._judged_sleep(sleep)  # type: ignore[assignment]
        try:
            result = yield
        finally:
            self._item, time.sleep = None, sleep
        if self._raised:  # and caught by the program: it is a failure all the same
            pytest.fail(str(self._raised[0]), pytrace=False)
        return result

    def _judged_sleep(self, sleep: Callable[[float], None]) -> Callable[[float], None]:
        @wraps(sleep)
        def judged(seconds: float) -> None:
            self._judge("time.sleep", (seconds,), depth=2)
            sleep(seconds)

        return judged

    def _judge(self, event: str, arguments: tuple[Any, ...], *, depth: int = 1) -> None:
        """`depth`: how many frames out the call is made."""
        blocks = _JUDGED.get(event)
        if blocks is None or self._item is None or not _in_a_loop() or not blocks(*arguments):
            return
        frames = _own_frames(sys._getframe(depth))  # noqa: SLF001 - PEP 578 gives no frame
        if not frames or self._allows(event, frames):
            return
        caller = frames[0].f_code
        place = f"{caller.co_filename}:{frames[0].f_lineno}"
        error = BlockingCallError(
            f"{event} blocks the event loop, in {caller.co_qualname} ({place}). Await what does not block, "
            f'or run it in a thread; or allow it: @pytest.mark.loopcanary(allow=["{event}"])'
        )
        self._raised.append(error)
        raise error

    def _allows(self, event: str, frames: list[FrameType]) -> bool:
        codes = [frame.f_code for frame in frames]
        names = [event, *(code.co_qualname for code in codes), *(code.co_filename for code in codes)]
        return any(fnmatchcase(name, pattern) for pattern in self._allow for name in names)


def _in_a_loop() -> bool:
    """Whether a loop runs in this thread."""
    trio = sys.modules.get("trio.lowlevel")
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    if running is not None and running() is not None:
        return True
    try:
        return trio is not None and trio.current_task() is not None
    except (AttributeError, RuntimeError):  # half imported; no run
        return False


def _own_frames(frame: FrameType | None) -> list[FrameType]:
    """Of the program, from the call out to the loop: none where the loop itself or an import calls."""
    if frame is None or _package(frame) in _IMPORTS:
        return []
    found = []
    while frame is not None and (package := _package(frame)) not in _LOOPS:
        if package not in sys.stdlib_module_names:
            found.append(frame)
        frame = frame.f_back
    return found


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
