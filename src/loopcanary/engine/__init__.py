"""The engine: its life in one process, from arming to the last stall.

Here are its boundary, the one place where failures of ours, or of plugged-in parts, stop inside the watched
program; and whether the program has room for it. A part that fails is switched off, logged once and counted;
the program never sees an exception.
"""

from __future__ import annotations

import os
import sys

from loopcanary.whose_exception import is_of_handler, ours, ours_of

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from loopcanary._native import Native
    from loopcanary.model.config import Config

LEAST = 32
"""Where fewer descriptors are allowed, those that we open may be the ones that the program lacks."""
FEW = 256
"""Where fewer are allowed, most of ours are open during stalls only (native/core/host/kept_file.h)."""
LEAST_MB = 64
"""Where less address space is left, ours (25 MB, most of it untouched) may be what the program lacks.
The extension keeps rings of calls and stacks for faults to the same."""
_THREAD_MB = 80
"""Of a thread that runs Python: its stack, malloc's arena for it, modules."""
_WORDS_MAX = 1_000
_EFFECTS = {
    "diagnosis": "this stall is counted but not shown; others are shown",
    "drain": "a stall may be shown late, or only by the next report",
    "engine": "loops are not watched; the program runs as without loopcanary",
    "fork": "a child process may not be watched; this one is",
    "judging": "stalls are not shown; with the native engine the next report stores them",
    "keeper": "the next report stores the stalls; they are not shown before",
    "pipeline": "a stall may be lost; others are shown",
    "recovery": "the next report stores the stalls of killed processes; this process is watched",
    "store": "while it fails, stalls are shown but not stored; the next report may have the first ones",
}
"""What is lost with a part, and what is not."""
_KEPT = "figures may be missing; stalls are shown and stored"
_PROBE = "probe "


class Boundary:
    """`with boundary("store"):` runs a part so that nothing it raises gets out. Thread-safe.

    `say` shows a line to the person who runs the program; it must not block. Where the program has set up
    logging, the logger `loopcanary` gets it instead.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._failures: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        self._off: set[str] = set()
        self._own_threads: set[int] = set()
        self._blocks: dict[tuple[str, bool], PartBlock] = {}
        self._user = effective_user()

    def on_own_thread(self) -> OwnThread:
        """In a block of it the calling thread runs plugged-in parts only: what is raised, SystemExit too, is
        the part's. On other threads it may come from a signal's handler."""
        return OwnThread(self._own_threads, _ident())

    def __call__(self, part: str) -> PartBlock:
        """A block for this part, which stays on when it fails: a full disk may have room later. A result is
        set before the block, so that a failure leaves the default."""
        return self._blocks.get((part, True)) or self._block(part, keep=True)

    def until_failure(self, part: str) -> PartBlock:
        """A block for this part, which its first failure switches off: `with ... as is_on: if is_on: ...`."""
        return self._blocks.get((part, False)) or self._block(part, keep=False)

    def _block(self, part: str, *, keep: bool) -> PartBlock:
        return self._blocks.setdefault((part, keep), PartBlock(self, part, keep=keep))

    def call(self, part: str, function: Callable[[], Any], /, *, keep: bool = False) -> Any:
        """What a step of a part that was handed to us returns; None where it raises, or the part is off."""
        with self(part) if keep else self.until_failure(part) as is_on:
            if is_on:
                return function()
        return None

    def stops(self, error: BaseException) -> bool:
        """Whether the error is ours. What is no Exception, and what a handler of a signal raised, gets out on
        the program's own threads."""
        is_ours = isinstance(error, Exception) and not is_of_handler(error)
        return is_ours or _ident() in self._own_threads

    def failed(self, part: str, error: BaseException, *, keep: bool = False) -> None:
        """Notes a failure that was caught elsewhere."""
        reason = _words(error)
        is_first = self._reasons.setdefault(part, reason) is reason
        # No lock, which a forked child may find taken: of failures at one moment one may not be counted.
        self._failures[part] = self._failures.get(part, 0) + 1
        if not keep:
            self._off.add(part)
        if is_first:
            effect = _effect(part, keep=keep)
            what = " and is switched off" if effect is None else f"; {effect}"
            self.tell(f"{part} failed{what}: {reason}{self._change_of_user()}")

    def _change_of_user(self) -> str:
        user = effective_user()
        if user == self._user:
            return ""
        return (
            f" (the program changed its user from {self._user} to {user}, who may have no access to"
            " loopcanary's files and modules; see docs/how-to/rights.md)"
        )

    def is_off(self, part: str) -> bool:
        return part in self._off

    def switch_off(self, part: str) -> None:
        """Never calls the part."""
        self._off.add(part)

    def tell(self, text: str) -> None:
        """One line for people. Raises nothing."""
        line = "loopcanary: " + text.replace("\n", " ")
        try:
            logging = sys.modules.get("logging")
            # logging's last resort writes to stderr, and blocks if that is a pipe without a reader.
            if logging is not None and logging.getLogger("loopcanary").hasHandlers():
                logging.getLogger("loopcanary").warning("%s", line)
            else:
                self._say(line + "\n")
        except ours():  # a handler of the program's, or a stderr that is gone
            return

    def renew_after_fork(self) -> None:
        """In a forked child: other threads are not there."""
        self._own_threads.clear()

    def counts(self) -> dict[str, int]:
        return {f"failures_{part}": count for part, count in self._failures.copy().items()}

    def reasons(self) -> dict[str, str]:
        """First failure of each part, for `doctor`."""
        return self._reasons.copy()


def _ident() -> int:
    from loopcanary.unpatched import unpatched

    ident: int = unpatched("_thread", "get_ident")()
    return ident


class PartBlock:
    """One part's block at the boundary; any number of threads at once, and in each other."""

    __slots__ = ("_boundary", "_keep", "_part")

    def __init__(self, boundary: Boundary, part: str, *, keep: bool) -> None:
        self._boundary = boundary
        self._part = part
        self._keep = keep

    def __enter__(self) -> bool:
        """Whether the part is on."""
        return not self._boundary.is_off(self._part)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or not self._boundary.stops(error):
            return False
        self._boundary.failed(self._part, error, keep=self._keep)
        return True


class OwnThread:
    """A block in which a thread is among `threads`."""

    def __init__(self, threads: set[int], ident: int) -> None:
        self._threads = threads
        self._ident = ident

    def __enter__(self) -> None:
        self._threads.add(self._ident)

    def __exit__(self, *_: object) -> None:
        self._threads.discard(self._ident)


def effective_user() -> int:
    """Whose rights this process has; 0 where the system has no such thing."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _effect(part: str, *, keep: bool) -> str | None:
    """What is lost with it, and what is not; None: nothing but the part."""
    if part.startswith(_PROBE):
        kind = part.removeprefix(_PROBE)
        return f"{kind} may stay patched" if keep else f"{kind} is not watched, other loops are"
    return _EFFECTS.get(part, _KEPT if keep else None)


def _words(error: BaseException) -> str:
    """The error's text. A foreign exception may fail to give one, or never end."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"[:_WORDS_MAX]
    except ours() as another:  # this is the boundary
        return f"{name}, whose message cannot be read: {type(another).__name__}"


def no_room() -> str | None:
    """Why nothing is watched in this process; None where there is room."""
    if (allowed := allowed_descriptors()) < LEAST:
        return (
            f"{allowed} file descriptors are allowed (ulimit -n), and the program may need them all;"
            f" allow {LEAST} or more"
        )
    if spare_address_space() == 0:
        return f"less than {LEAST_MB} MB of address space are left (ulimit -v): the program may need them all"
    return None


def allowed_descriptors() -> int:
    """The soft limit; FEW where the system has none, or does not say."""
    try:
        allowed = os.sysconf("SC_OPEN_MAX")
    except ours_of(AttributeError, ValueError, OSError):
        return FEW
    return allowed if allowed >= 0 else FEW


def spare_address_space() -> int:
    """How many bytes ours may take, so that the program keeps LEAST_MB; very many where there is no limit, or
    where the system does not say, or the extension, which asks it, is not here."""
    try:
        native: Native = __import__("loopcanary._native", fromlist=("Native",))
    except ImportError:
        return sys.maxsize
    return native.spare_addresses()


def without_threads(config: Config, boundary: Boundary) -> Config:
    """The settings. If address space is short, without `locks` and `windows`: their threads run Python."""
    if not (config.locks or config.windows_ns) or spare_address_space() >> 20 >= 25 + _THREAD_MB:
        return config
    boundary.tell("locks and windows are not traced: address space is short (ulimit -v)")
    return config.replaced(locks=False, windows_ns=0)


def say_what_is_missing(config: Config, boundary: Boundary) -> None:
    """Reports the settings that the portable engine cannot serve."""
    if config.exit_when_hung_ns:
        boundary.tell("exit_when_hung needs the native engine: this process will not end itself")
    if config.signals:
        boundary.tell("signals needs the native engine: their senders are not recorded")
