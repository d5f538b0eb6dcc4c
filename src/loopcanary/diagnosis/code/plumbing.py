"""Frames that only carry others: the loop's own, import machinery, wrappers. Data, and two questions."""

from __future__ import annotations

from collections.abc import Mapping

from loopcanary.model.loop_frames import tail

_NONE: frozenset[str] = frozenset()
_ANY: frozenset[str] = frozenset({"*"})

PLUMBING: Mapping[str, frozenset[str]] = {
    # Tail of the path -> functions.
    "asyncio/base_events.py": _ANY,
    "asyncio/events.py": _ANY,
    "asyncio/runners.py": _ANY,
    "asyncio/unix_events.py": _ANY,
    "asyncio/selector_events.py": frozenset({"_process_events"}),
    "concurrent/futures/thread.py": _ANY,
    "gevent/hub.py": _ANY,
    "_core/_run.py": _ANY,
}
"""Never the culprit. Files one level below the standard library are in PLUMBING_MODULES."""

PLUMBING_MODULES: frozenset[str] = frozenset(
    {"selectors.py", "runpy.py", "contextlib.py", "functools.py", "contextvars.py"}
)
"""Files of the standard library all of whose functions only carry others."""

PLUMBING_FUNCTIONS: Mapping[str, frozenset[str]] = {
    "threading.py": frozenset({"_bootstrap", "_bootstrap_inner", "run"}),
}
"""Files of the standard library some of whose functions do."""

IMPORT_FILES: frozenset[str] = frozenset(
    {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "importlib/__init__.py"}
)

CHILD_FILES: frozenset[str] = frozenset(
    {"multiprocessing/popen_fork.py", "multiprocessing/popen_spawn_posix.py"}
)
"""What starts child processes and waits for them, beside subprocess.py."""


def is_import_machinery(file: str) -> bool:
    """Whether the file is part of importlib."""
    return file in IMPORT_FILES or tail(file) in IMPORT_FILES


def is_child_control(file: str) -> bool:
    """Whether the file starts child processes and waits for them."""
    place = tail(file)
    return place in CHILD_FILES or place.endswith("/subprocess.py")


def is_resolver(file: str) -> bool:
    """Whether the file resolves names by itself, without the C library: dnspython's."""
    return tail(file) == "dns/resolver.py"


def carriers(file: str, *, stdlib: bool) -> frozenset[str] | None:
    """The functions of a file that only carry others; None: all of them. `stdlib`: the file belongs to the
    standard library."""
    if is_import_machinery(file) or file == "<frozen runpy>":
        return None
    place = tail(file)
    name = place.rpartition("/")[2]
    if stdlib and name in PLUMBING_MODULES:
        return None
    functions = PLUMBING.get(place, _NONE)
    if functions is _ANY:
        return None
    return functions | PLUMBING_FUNCTIONS.get(name, _NONE) if stdlib else functions
