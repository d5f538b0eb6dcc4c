"""Where loops call the work: frames outside of that are not part of a stall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from loopcanary.model.stack_frame import StackFrame

_NONE: frozenset[str] = frozenset()

BOUNDARIES: Mapping[str, frozenset[str]] = {
    "asyncio/base_events.py": frozenset({"_run_once", "run_forever", "run_until_complete"}),
    "asyncio/events.py": frozenset({"_run"}),
    "asyncio/runners.py": frozenset({"run"}),
    "_core/_run.py": frozenset({"unrolled_run", "run", "guest_tick"}),
    "tkinter/__init__.py": frozenset({"mainloop", "update", "update_idletasks"}),
    "gevent/hub.py": frozenset({"run"}),
    "overrides/GLib.py": frozenset({"run"}),
    "internet/base.py": frozenset({"mainLoop", "run"}),
    # A forked worker's stack still has the frames that forked it, as if it waited for a child.
    "multiprocessing/process.py": frozenset({"_bootstrap"}),
    "billiard/process.py": frozenset({"_bootstrap"}),
}
"""Where the loop calls the work, or a process its worker: what lies outside called it, and is not part of the
stall."""


@lru_cache(maxsize=256)
def tail(file: str) -> str:
    """The last two parts of a path, by which the tables are keyed."""
    folder, _, name = file.replace("\\", "/").rpartition("/")
    return f"{folder.rpartition('/')[2]}/{name}" if folder else name


def boundaries(file: str) -> frozenset[str]:
    """The functions of a file in which the loop's own frames begin, seen from the innermost frame."""
    return BOUNDARIES.get(tail(file), _NONE)


def work_of(frames: Sequence[StackFrame]) -> Sequence[StackFrame]:
    """The frames of the work, innermost first; of a loop that ran no work its innermost frame."""
    for index, frame in enumerate(frames):
        if not frame.in_app and frame.function in boundaries(frame.file):
            return frames[: max(index, 1)]
    return frames
