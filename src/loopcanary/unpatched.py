"""What the standard library itself has under a name, where gevent's monkey has put something else there.

A patched wait gives way to the thread's other greenlets, and a thread that has none gets a hub to wait in.
Ours are short, for the most part on threads of our own, and are to be what they are without gevent.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from typing import Any


def unpatched(module: str, name: str) -> Any:
    """AttributeError where the module has no such name."""
    monkey = sys.modules.get("gevent.monkey")
    get_original = getattr(monkey, "get_original", None)  # None while it is being imported
    return getattr(__import__(module), name) if get_original is None else get_original(module, name)
