"""What is known of a stall beyond its cause and its call, as far as advice goes by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from loopcanary.late_dataclass import dataclass
from loopcanary.model import Cause

ABOUT_NO_CALL = frozenset({Cause.GC, Cause.HOST, Cause.BURST, Cause.GIL, Cause.IMPORT, Cause.CRASH})
"""Causes whose remedy is not about the call that the thread happened to be in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """The culprit is a plain `def`: what it would await can be awaited elsewhere only."""

    function: str
    """Its name; without a coroutine, that of the function that the loop or a package called."""
    may_await: bool = False
    """It can be made an `async def`; a lambda or a special method cannot."""
    has_callers: bool = False
    """Other functions lie between it and the coroutine."""
    coroutine: str | None = None
    """The innermost coroutine of the program that called it; None: the loop or a package did."""
    at: str = ""
    """File and line of the coroutine's call."""
    is_repeated: bool = False
    """A loop of the coroutine repeats the call, and does not await."""
    handed: str | None = None
    """The call as arguments of what runs it elsewhere: `load, path`; None: it is not written as a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What advice goes by, beside cause and call."""

    loop: str = "asyncio"
    """The kind of loop."""
    topic: str | None = None
    """What the stall is about, if that is more than its cause: the `topic` of a row of words.remedies."""
    reached: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """The modules below the culprit, outermost first, and the time that led through them."""
    origin: str | None = None
    """What made the receiver of the call: `sqlite3.connect`."""
    within: frozenset[str] = frozenset()
    """The packages that the stacks lead through."""
    released_gil: bool | None = None
    """The C call let other threads run; None: no such call, or not known."""
    plain: Plain | None = None
    """None: the culprit can await, or it is not known whether."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Of the places in a row's text, but for `call`."""
