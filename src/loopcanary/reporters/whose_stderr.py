"""Whether the stderr of this process is a person's, or a pipe into a parent that captures it."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not loaded for it: every watched interpreter may import this
if TYPE_CHECKING:
    from collections.abc import MutableMapping

STDERR = "LOOPCANARY_RUN_STDERR"
"""Environment: `pid:file` of the process that a person started, and its stderr then."""


def own_stderr() -> str:
    """The value of STDERR for children, by which they know whether they share this process's stderr."""
    return f"{os.getpid()}:{_stderr_file()}"


def tell_children(environ: MutableMapping[str, str]) -> None:
    """The first process of a program tells, whatever it is: its children may be what runs a loop."""
    environ.setdefault(STDERR, own_stderr())


def is_a_child() -> bool:
    """Whether a process above this one was started by a person, and this one was not."""
    told = os.environ.get(STDERR)
    return told is not None and told.partition(":")[0] != str(os.getpid())


def may_speak() -> bool:
    """Whether this stderr is a person's: that of a child may be a pipe into its parent, which parses it."""
    return not is_a_child() or os.environ[STDERR].partition(":")[2] == (_stderr_file() or None)


def _stderr_file() -> str:
    try:
        status = os.fstat(2)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{status.st_rdev}"
