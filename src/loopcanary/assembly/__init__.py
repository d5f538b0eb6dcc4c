"""Wires the parts together; the only place that knows them all.

Each file is named after what it puts together:

agent         the engine of this process, armed
engine        the same, from its first loop on
integrations  and tracers: what the agent brings with the libraries that a program uses
store         stores, and what dead and running processes left beside them
explanations  what reports ask the diagnosis
doctor        what works here, of each part a file
health        whether the loops of running programs make progress
dump          another process, read from outside
top           all watched processes, from their flight files
attach        another process, watched from now on; attach_inside: what runs in it
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from typing import Any

    from loopcanary._native import Native


def is_main_interpreter() -> bool:
    """Whether this is the interpreter that the process began with. The extension loads in no other."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # from 3.13 on; before
        try:
            interpreters: Any = __import__(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


def native_module() -> Native:
    """The extension; ImportError where it is not built or cannot be loaded."""
    native: Native = __import__("loopcanary._native", fromlist=("Native",))
    return native
