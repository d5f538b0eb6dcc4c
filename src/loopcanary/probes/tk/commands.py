"""What tkinter's functions and commands are, for the probes of both engines."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any

LOOPS = (
    # Of tkinter.Misc: what runs Tcl's loop, and as what (native/probes/tk/loop.h).
    ("mainloop", "run"),
    ("update", "update"),
    ("wait_window", "nested"),
    ("wait_variable", "nested"),
    ("waitvar", "nested"),
    ("wait_visibility", "nested"),
    ("quit", "gone"),
)


def event_places(told: Sequence[str]) -> tuple[int, int, int, int]:
    """Of what Tcl says about an event (Misc._subst_format; 3.15 gives more than 3.14): how many, and the
    places of the button's number, the time and the type; no number where one is missing."""
    if not {"%b", "%t", "%T"} <= set(told):
        return 0, 0, 0, 0
    return len(told), told.index("%b"), told.index("%t"), told.index("%T")


def registered_by_after(after: Any) -> tuple[CodeType, int] | None:
    """The function inside of Misc.after that it registers, and where in its closure the program's is."""
    code = getattr(getattr(after, "__wrapped__", after), "__code__", None)  # past the tracer of windows
    for constant in getattr(code, "co_consts", ()):
        free = getattr(constant, "co_freevars", ())
        if "func" in free and "args" in free:
            return constant, free.index("func")
    return None
