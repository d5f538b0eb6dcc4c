"""A row of the table of remedies, and the words its columns are written in."""

from __future__ import annotations

from enum import Enum

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause


class Way(Enum):
    """The ways out, in the words of no loop."""

    TIMER = "a timer in place of sleeping"
    THREAD = "another thread: the call lets other threads run"
    PROCESS = "another process: the call holds the GIL"
    PIECES = "smaller pieces: Python code that computes"
    CHILD = "the loop's own way to await a child process"
    RESOLVE = "the loop's own way to resolve names"
    CLIENT = "a client made for the loop, or a thread"
    HANDOVER = "no waiting for threads: they hand over their result"
    INPUT = "input read on another thread"
    WATCH = "the loop watches a descriptor"


@dataclass(frozen=True, slots=True)
class Needs:
    """What must have been seen for a row to apply: proof beyond the package. Empty columns need nothing.

    A place is a module, its package, or `module:function` by its qualified name.
    """

    through: tuple[str, ...] = ()
    """Places below the culprit: one of them had most of its time."""
    above: tuple[str, ...] = ()
    """Places that called the culprit, or a caller of it."""
    own: tuple[str, ...] = ()
    """Names of functions, the culprit's or of its callers, of which a place in `above` called one."""
    without: tuple[str, ...] = ()
    """Arguments by keyword that the call, as written, does not have."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One row: when it applies, and the sentence. Empty columns apply to everything.

    `{call}` in the text is the call as written; `{holder}` the function that holds the lock or the GIL, `{at}` its
    file and line, `{slow}` what it does there. A row without calls, modules, topic and package has a loop's words
    for a way or a cause, for stalls that no other row fits.
    """

    id: str
    """What stores keep in place of the sentence: unique, and never given to another row."""
    text: str
    way: Way | None = None
    """None: the text is about no loop, and fits any."""
    causes: frozenset[Cause] = frozenset()
    calls: tuple[str, ...] = ()
    """Dotted names as they are usually written; of an operator, such as `in`, its function in the module
    `operator`, and `del` of that statement. A call fits whose name is the same, or ends with it after a
    dot; one without a dot is a built-in's; `*.execute` fits any receiver. A bare call, as `from time import
    sleep` gives, fits by its last part where `causes` does too."""
    modules: tuple[str, ...] = ()
    """Packages or modules that the stall reached below the culprit."""
    loop: str = ""
    """What the name of the kind of loop begins with. Rows for a call are in asyncio's words; one that asks for
    proof applies on this loop only."""
    topic: str = ""
    """What a finding is about, where that is more than its cause."""
    within: str = ""
    """A package that the stack leads through."""
    replaces: tuple[str, ...] = ()
    """With `within`: the rows that this one replaces there. Without any, it is said beside a way that a thread
    makes possible. With `topic`: the only rows, or ways of rows, that it replaces; without any, it
    replaces all."""
    needs: Needs | None = None
    """Proof that it asks for. Rows that have it go before all others."""

    @property
    def needs_coroutine(self) -> bool:
        """Whether it can be followed in an `async def` only."""
        return "`await " in self.text or self.way in (Way.CLIENT, Way.HANDOVER, Way.TIMER)


ANY: frozenset[Cause] = frozenset()
WAITING = frozenset({Cause.NETWORK_IO, Cause.DNS, Cause.LOCK, Cause.SLEEP, Cause.UNKNOWN})
"""Causes of a call that waits for others."""
COMPUTING = frozenset({Cause.CPU, Cause.NATIVE_CPU, Cause.UNKNOWN})
LOADING = COMPUTING | {Cause.DISK_IO}
DISK = frozenset({Cause.DISK_IO, Cause.UNKNOWN})
LOCKS = frozenset({Cause.LOCK, Cause.UNKNOWN})
NAMES = frozenset({Cause.DNS, Cause.UNKNOWN})
SLEEP = frozenset({Cause.SLEEP, Cause.UNKNOWN})
CAUSES_OF = {
    **{cause.value: frozenset({cause}) for cause in Cause},
    "any": ANY,
    "waiting": WAITING,
    "computing": COMPUTING,
    "loading": LOADING,
    "locks": LOCKS,
}
"""By word, the causes that a library's file names by it."""


def call(id_: str, way: Way | None, causes: frozenset[Cause], calls: str, modules: str, text: str) -> Remedy:
    """A row for calls and modules, each separated by blanks."""
    return Remedy(id_, text, way, causes, tuple(calls.split()), tuple(modules.split()))


def only(*causes: Cause) -> frozenset[Cause]:
    """The column `causes` of a row that shares it with no other."""
    return frozenset(causes)
