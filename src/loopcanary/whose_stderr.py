"""Whether the stderr of this process is a person's, or a pipe into a parent that captures it."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not loaded for it: every watched interpreter may import this
if TYPE_CHECKING:
    from collections.abc import MutableMapping

_WIDTH_DEFAULT = 80
_WIDTH_LEAST, _WIDTH_MOST = 40, 120
STDERR = "LOOPCANARY_RUN_STDERR"
"""Environment: `pid:file` of the process that a person started, and its stderr then."""


def own_stderr() -> str:
    """The value of STDERR for children, by which they know whether they share this process's stderr."""
    return f"{os.getpid()}:{_stderr_file()}"


def tell_children(environ: MutableMapping[str, str]) -> None:
    """The first process of a program writes it, also one without a loop: its children may run the loop."""
    environ.setdefault(STDERR, own_stderr())


def is_a_child() -> bool:
    """Whether a process above this one was started by a person, and this one was not."""
    told = os.environ.get(STDERR)
    return told is not None and told.partition(":")[0] != str(os.getpid())


def may_speak() -> bool:
    """Whether this stderr is a person's: that of a child may be a pipe into its parent, which parses it."""
    return not is_a_child() or os.environ[STDERR].partition(":")[2] == (_stderr_file() or None)


def look(descriptor: int, *, is_terminal: bool) -> tuple[bool, bool, int]:
    """What the other end can show: colours, links, and how wide it is now."""
    kind = os.environ.get("TERM", "")
    shows = is_terminal and kind != "dumb"
    # https://no-color.org: present and not empty; the value does not matter.
    colour = shows and not os.environ.get("NO_COLOR")
    return colour, shows and kind not in {"linux", ""}, _width(descriptor) if shows else _WIDTH_DEFAULT


def _width(descriptor: int) -> int:
    try:
        columns = os.get_terminal_size(descriptor).columns
    except OSError:
        return _WIDTH_DEFAULT
    return min(max(columns, _WIDTH_LEAST), _WIDTH_MOST) if columns else _WIDTH_DEFAULT


def is_by_hand() -> bool:
    """Whether this process is what a person started with `loopcanary run`."""
    return os.environ.get("LOOPCANARY_RUN_PID") == str(os.getpid())


def console_facts() -> dict[str, object]:
    """What a keeper, which is not here, has to know to speak on this stderr."""
    is_terminal = os.isatty(2)
    colour, links, width = look(2, is_terminal=is_terminal)
    return {
        "speaks": may_speak(),
        "terminal": is_terminal,
        "columns": width,
        "color": colour,
        "links": links,
        "child": is_a_child(),
        "by_hand": is_by_hand(),
    }


def own_stderr_file() -> tuple[int, int]:
    """Device and inode; zeros where there is none."""
    try:
        status = os.fstat(2)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino


def _stderr_file() -> str:
    try:
        status = os.fstat(2)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{status.st_rdev}"
