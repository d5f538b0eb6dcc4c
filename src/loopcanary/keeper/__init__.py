"""The keeper, a process beside the watched programs of a store, which takes in what they leave: where it is
found (its lock, bell and status), and the words that start one.

One keeper serves a store for one user, one loopcanary and one Python environment, until the machine is
started anew. The watched program loads this: it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32

from loopcanary.whose_exception import ours_of

VERSION = "0.1.0"
"""loopcanary's own; importlib.metadata would take 20 ms to find it."""
FOLDER = "keeper"
FOLDER_MODE, FILE_MODE = 0o700, 0o600
LOCK, STATUS, LOG = "lock", "json", "log"
"""Suffixes of a keeper's files in the store."""
BELL, MARK = "bell", "mark"
"""Suffixes of those in memory, where no program waits for a disk: the fifo that wakes the keeper, and the
file whose time says when a keeper was last started."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a tmpfs by definition of the kernel's documentation
FLIGHT_DIR = "LOOPCANARY_FLIGHT_DIR"
_WORDS_MAX = 4_096
_ENOENT, _ENXIO = 2, 6
"""Their numbers on all systems; `errno` would be a module more."""
_NOT_FOR_KEEPERS = frozenset(
    {
        "COVERAGE_PROCESS_START",
        "COV_CORE_CONFIG",
        "COV_CORE_DATAFILE",
        "COV_CORE_SOURCE",
        "PYTHONASYNCIODEBUG",
        "PYTHONDEVMODE",
        "PYTHONINSPECT",
        "PYTHONPROFILEIMPORTTIME",
        "PYTHONSTARTUP",
        "PYTHONTRACEMALLOC",
        "PYTHONVERBOSE",
        "PYTHONWARNINGS",
    }
)
"""Variables that are meant for the program: its debugging, its coverage, its start."""

_TAKES_NO_ORPHANS = frozenset(
    {
        *("cat", "java", "node", "perl", "php", "pypy", "python", "ruby", "sleep", "tail"),
        *("celery", "daphne", "flask", "granian", "hypercorn", "uvicorn"),
    }
)
"""As the kernel names them, without their versions. A shell takes any child."""
_TAKES_ANY = frozenset({b"gunicorn", b"supervisord"})
"""Programs in Python that wait for any child."""

memory = os.environ.get(FLIGHT_DIR) or SHARED_MEMORY
"""Where flight files are: of a keeper, and of a program after `use`."""


def use(flight_dir: str | None) -> None:
    """This process's flight files are in this folder; None: as always."""
    global memory  # noqa: PLW0603 - the program's only
    memory = flight_dir or SHARED_MEMORY


def key() -> str:
    """Eight hexadecimal digits, the same in all processes that one keeper serves."""
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    words = "\0".join((VERSION, sys.prefix, _boot_id(), str(user), _memory()))
    return f"{crc32(words.encode('utf-8', 'surrogateescape')):08x}"


def path(store: str, ending: str, of: str = "") -> str:
    """Path of a file of this process's keeper of the store, or of the keeper with the key `of`."""
    return f"{below(store, FOLDER)}/{of or key()}.{ending}"


def below(store: str, name: str, *, make: bool = False, theirs: bool = False) -> str:
    """The path by which to open what lies in this folder of the store: see `whose_folder`."""
    from loopcanary.facts import is_ours  # which a watched program has loaded

    folder = f"{store}/{name}"
    if is_ours(folder):
        return folder
    from loopcanary import whose_folder  # only for root in other users' folders

    return whose_folder.below(store, name, make=make, theirs=theirs)


def path_in_memory(store: str, ending: str, of: str = "") -> str:
    """As `path`, of what lies beside the flight files; in the store where there is no such memory. All
    processes name the store by the same path, but for links."""
    if not os.access(memory, os.W_OK):
        return path(store, ending, of)
    place = crc32(os.path.realpath(store).encode("utf-8", "surrogateescape"))
    return f"{memory}/loopcanary-{of or key()}-{place:08x}.{ending}"


def bell_path(store: str) -> str:
    """A fifo: a line makes the keeper look at once. Opened without waiting; ENXIO, ENOENT: no keeper."""
    return path_in_memory(store, BELL)


def is_heard(bell: str) -> bool:
    """Whether a keeper holds it. To try the lock could keep one that begins from taking it."""
    try:
        os.close(os.open(bell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW))
    except ours_of(OSError) as error:
        return error.errno not in (_ENOENT, _ENXIO)
    return True


def log_path(store: str) -> str:
    """The file in which a keeper that a program has started writes its errors."""
    return path(store, LOG)


def command(store: str) -> tuple[str, ...]:
    """Words that start a keeper, which ends with the last watched process of the store. The first is empty
    where none is to be started."""
    if no_reaper() is not None:
        return ("",)
    return sys.executable, "-P", "-m", "loopcanary", "keep", "--apart", store


def environment() -> dict[str, str]:
    """A keeper's environment: this process's, without what would change the keeper. It is not watched itself,
    and finds our modules before those of the same name in the program's folders."""
    ignored = sys.flags.ignore_environment  # by `python -I`: they do not count for the program either
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _NOT_FOR_KEEPERS and not (ignored and name.startswith("PYTHON"))
    }
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders = kept.get("PYTHONPATH", "").split(os.pathsep)
    theirs = (folder for folder in folders if folder not in ("", ours) and not _changes_start(folder))
    made = {**kept, "LOOPCANARY": "0", "PYTHONPATH": os.pathsep.join((ours, *theirs))}
    return made if memory == SHARED_MEMORY else {**made, FLIGHT_DIR: memory}


def _changes_start(folder: str) -> bool:
    """Whether it has code for the start of each Python: tools for telemetry and coverage begin so."""
    return any(os.path.exists(f"{folder}/{name}.py") for name in ("sitecustomize", "usercustomize"))


def no_interpreter() -> str | None:
    """Why there is no Python to start: what runs may be an application that has Python inside."""
    name = os.path.basename(sys.executable or "").lower()
    if getattr(sys, "frozen", False) or not name.startswith(("python", "pypy")):
        return "the program's executable is not a Python"
    if sys.platform == "win32":
        return "on Windows no process is started beside the program"
    return None


def no_reaper(first: str = "/proc/1") -> str | None:
    """Why a keeper would stay as a zombie: the first process of this container, to which orphans go, waits
    for no child, or for those that it knows. None: it takes any, or its name (in `first`) says nothing."""
    try:
        with open(f"{first}/comm", "rb") as file:
            name = file.read().strip().decode("latin-1")
        with open(f"{first}/cmdline", "rb") as file:
            words = {word.rpartition(b"/")[2] for word in file.read(_WORDS_MAX).split(b"\0")}
    except ours_of(OSError):
        return None
    if os.getpid() == 1 or name.rstrip("0123456789.") not in _TAKES_NO_ORPHANS or words & _TAKES_ANY:
        return None
    why = "does not reap orphans: a keeper would stay as a zombie; use `docker run --init`"
    return f"the first process of this container, {name}, {why}"


def prepare(store: str) -> None:
    """Makes the folders, for this user alone. Raises OSError."""
    folder = below(store, FOLDER, make=True)
    for one in (os.path.dirname(folder), folder):
        os.makedirs(one, FOLDER_MODE, exist_ok=True)


def _memory() -> str:
    """Which shared memory this is, where flight files are: containers of one image may have a store together
    and this each for itself, or both."""
    try:
        return str(os.stat(memory).st_dev)
    except ours_of(OSError):
        return "-"


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip().decode("latin-1")
    except ours_of(OSError):
        return ""
