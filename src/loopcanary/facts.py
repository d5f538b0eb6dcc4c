"""Facts of this process: what a report says of where it ran, and where its code lies.

Every fact is read for itself and falls back to empty: a missing /proc, a sandbox or an odd platform costs
that fact, never the session. Nothing here identifies a user; what does (user id, network) comes from the
configuration only. Arguments of the program are never read into a fact.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from loopcanary.whose_exception import ours, ours_of

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from loopcanary.model.config import Config

_PTH_BYTES_MAX = 1 << 16
_PTH_FILES_MAX = 256
_INSTALLED = ("site-packages", "dist-packages")
_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalPy"}
_CGROUP_LEVELS_MAX = 64
LINKS_MAX = 40
"""As the kernel's MAXSYMLINKS."""
_SPARE_DESCRIPTORS = 16
"""As in native/core/host/kept_file.c."""
OWN_CODE = "own_code"
"""Key of the facts: what of the program's own sees its stalls; None: nothing does."""
_UNLIMITED_BYTES = 1 << 60
"""cgroup v1 writes "no limit" as the largest multiple of a page below 2^63."""


def session_facts(config: Config, *, engine: str = "", command: str | None = None) -> dict[str, Any]:
    """The session of this process as it begins, as `wire` writes it.

    `engine`: name of the backend that watches. `command`: the program, where the caller knows it better
    than `sys` (a runner that has not started it yet). Never raises; below 5 ms. Any thread.
    """
    now_wall_ns = time.time_ns()
    pid = os.getpid()
    command = command or _or(program, "")
    memory_limit_bytes, cpu_limit = _or(cgroup_limits, (None, None))
    seconds, ns = divmod(now_wall_ns, 1_000_000_000)
    system, host, release, _, machine = _or(_uname, ("",) * 5)
    return {
        "id": session_id(now_wall_ns, pid, os.urandom(2)),
        "name": config.name or _or(lambda: program_name(command), ""),
        "pid": pid,
        "parent_pid": _or(os.getppid, 0),
        "host": host,
        "python": _or(_python, ""),
        "engine": engine,
        "started_at": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ns:09}Z",
        "ended_at": None,
        "end": "running",
        "threshold_ms": config.threshold_ns / 1_000_000,
        "version": config.version,
        "labels": dict(config.labels),
        "command": command,
        "machine": machine,
        "system": f"{system} {release}".strip(),
        "cores": _or(_cores, 0),
        "memory_bytes": _or(_memory_bytes, 0),
        "memory_limit_bytes": memory_limit_bytes,
        "cpu_limit": cpu_limit,
        "pid_namespace": pid_namespace(),
    }


def pid_namespace() -> int:
    """The inode of this process's PID namespace; 0 on systems without such namespaces."""
    found: int = _or(lambda: os.stat("/proc/self/ns/pid").st_ino, 0)
    return found


def session_id(wall_ns: int, pid: int, salt: bytes) -> str:
    """Unique, and sorted by time as text: `20261121T045510-4711-9f3c` (UTC)."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(wall_ns // 1_000_000_000))
    return f"{stamp}-{pid}-{salt.hex()}"


def program() -> str:
    """The program of this process: `-m package.module`, or the script as it was started, or `-c`."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    module = getattr(spec, "name", None)
    if isinstance(module, str) and module.partition(".")[0] != "loopcanary":
        return "-m " + module.removesuffix(".__main__")
    started = sys.argv[0] if sys.argv else ""
    # While `site` runs, -m is not yet replaced by the module's path.
    return program_of_command_line(sys.orig_argv) if started in ("", "-m") else started


def program_of_command_line(words: Sequence[str]) -> str:
    """The program among the words of an interpreter's command line, without its arguments."""
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-") or word == "-":
            return word
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(rest, "")
            continue
        for index, option in enumerate(word[1:], start=2):
            if option == "c":
                return "-c"
            if option in "mWX":  # These take a value: the rest of the word, or the next one.
                value = word[index:] or next(rest, "")
                if option == "m":
                    return f"-m {value}"
                break
    return ""


def program_name(command: str) -> str:
    """Short name of a program for people: the module or package, or the script's file name."""
    if command.startswith("-m "):
        return command.removeprefix("-m ")
    if command in ("", "-", "-c"):
        return f"python {command}".rstrip()
    # What `-m package` makes of sys.argv, and children of multiprocessing take over.
    folder, _, name = command.replace(os.sep, "/").rstrip("/").rpartition("/")
    return folder.rpartition("/")[2] if name == "__main__.py" and folder else name


def cgroup_limits(root: str = "/") -> tuple[int | None, float | None]:
    """Memory in bytes, and cores, that the cgroups grant this process; None: as much as there is.

    The tightest of the process's own group and all above it; version 1, 2 or a mixture. `root`: the root
    of the file system. Sources: cgroups(7), proc_pid_mountinfo(5), Documentation/admin-guide/cgroup-v2.rst.
    """
    memory: list[int] = []
    cores: list[float] = []
    mounts = _cgroup_mounts(root)
    for controllers, group in _groups(root):
        for controller in controllers:
            if controller in mounts and controller in ("", "memory", "cpu"):
                for folder in _levels(mounts[controller], group):
                    memory.extend(_memory_limits(folder))
                    cores.extend(_core_limits(folder))
    return min(memory, default=None), min(cores, default=None)


def is_unfrozen() -> bool:
    """Whether Python reads modules of its own from files that it could have had frozen: by
    `-X frozen_modules=off`, in a build tree. A program that was packed as one file has no choice."""
    import _imp  # of the interpreter itself

    return not (hasattr(sys, "frozen") or _imp.is_frozen("os"))


def is_short_of_descriptors() -> bool:
    """Whether the process has nearly all that it may have: then none of ours may come, nor go, so that the
    program gets as many as without us. False where the system does not say (Linux before 6.2)."""
    try:
        taken, allowed = os.stat("/proc/self/fd").st_size, os.sysconf("SC_OPEN_MAX")
    except ours_of(AttributeError, OSError, ValueError):
        return False
    return taken > 0 and 0 <= allowed < taken + min(_SPARE_DESCRIPTORS, allowed // 8)


def moved_up(fd: int) -> int:
    """The descriptor with a number above the program's, whose own are given out in order (kept_file.c)."""
    try:
        import fcntl
        import resource

        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        least = 512 if allowed < 0 else max(3, min(512, allowed // 2))
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
    except ours_of(ImportError, OSError):
        return fd
    os.close(fd)
    return moved


def _groups(root: str) -> Iterator[tuple[list[str], str]]:
    """(controllers, group) of each hierarchy; version 2 has the controller ""."""
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        yield controllers.split(","), group


def _cgroup_mounts(root: str) -> dict[str, tuple[str, str]]:
    mounts: dict[str, tuple[str, str]] = {}
    for line in _read(f"{root}/proc/self/mountinfo").splitlines():
        match line.replace(" - ", " ", 1).split() if " - cgroup" in line else ():
            case (_, _, _, group, point, *_, kind, _, options):
                mount = group, f"{root}/{point.lstrip('/')}"
                for controller in [""] if kind == "cgroup2" else options.split(","):
                    mounts.setdefault(controller, mount)
    return mounts


def _levels(mount: tuple[str, str], group: str) -> Iterator[str]:
    """Folders of the group and of those above it, as far as they are mounted. `mount`: of a hierarchy, which
    part of it, and where."""
    root, point = mount
    inside = group.removeprefix(root.rstrip("/")).strip("/")
    # In a container the group's path may be the host's, which is not mounted here: its own is at the top.
    steps = [step for step in inside.split("/") if step not in ("", "..")][:_CGROUP_LEVELS_MAX]
    for count in range(len(steps), -1, -1):
        folder = "/".join([point, *steps[:count]])
        if os.path.isdir(folder):
            yield folder


def _memory_limits(folder: str) -> Iterable[int]:
    for name in ("memory.max", "memory.limit_in_bytes"):
        text = _read(f"{folder}/{name}").strip()
        if text.isdigit() and int(text) < _UNLIMITED_BYTES:
            yield int(text)


def _core_limits(folder: str) -> Iterable[float]:
    quotas = [
        _read(f"{folder}/cpu.max").split(),
        [*_read(f"{folder}/cpu.cfs_quota_us").split(), *_read(f"{folder}/cpu.cfs_period_us").split()],
    ]
    for words in quotas:
        match words:
            # "max" and -1 mean no quota.
            case (quota, period) if quota.isdigit() and period.isdigit() and int(period):
                yield int(quota) / int(period)


def _uname() -> Sequence[str]:
    """System, host, release, version and machine."""
    if hasattr(os, "uname"):
        return os.uname()
    import platform  # only where the cheaper source is missing

    name = platform.uname()
    return name.system, name.node, name.release, name.version, name.machine


def _python() -> str:
    """Implementation and language version: `CPython 3.12.1`, `CPython 3.14.0rc2`."""
    name = sys.implementation.name
    major, minor, micro, level, serial = sys.version_info
    tag = "" if level == "final" else {"alpha": "a", "beta": "b"}.get(level, "rc") + str(serial)
    return f"{_IMPLEMENTATIONS.get(name, name)} {major}.{minor}.{micro}{tag}"


def _cores() -> int:
    """Cores this process may run on; an affinity mask is a limit that matters to a stall."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 0


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except ours_of(OSError):
        return ""


def _or(read: Callable[[], Any], empty: Any) -> Any:
    """The fact, or `empty` where it cannot be had."""
    try:
        return read()
    except ours():  # a fact that cannot be had must not stop the program
        return empty


# ---- where the code lies, for diagnosis.CodePaths, which may judge it elsewhere -----------------------
#
# Paths are made absolute by os.path: pathlib can only do so by following links, and a code object may hold
# either form.


def code_paths() -> dict[str, list[str] | str]:
    """By the names of CodePaths' fields. Reads the `.pth` files of the environment; raises nothing for one
    that cannot be read."""
    installed = _folders(_site_folders())
    return {
        "stdlib": _folders([*_stdlib_folders(), *_frozen_archives()]),
        "site": installed,
        "editable": _folders(_editable_folders(installed)),
        "ours": _folders([os.path.dirname(__file__)]),
        "roots": _folders(entry or os.curdir for entry in sys.path),
        "working": working_folder(),
        "main": _main_file(),
    }


def library_folders() -> list[str]:
    """Folders of the standard library, of packages, and ours: absolute paths."""
    return _folders([*_stdlib_folders(), *_site_folders(), os.path.dirname(__file__)])


def code_origin() -> tuple[object, ...]:
    """What `code_paths` is made of, as far as it changes while a program begins."""
    return (*sys.path, working_folder(), _main_file())


_resolved: dict[str, str] = {}
"""Folders with their links resolved, by their absolute paths: a program's first loop asks for most again."""


def _folders(entries: Iterable[str]) -> list[str]:
    """Absolute, as written and with links resolved, each once."""
    seen: dict[str, None] = {}
    for entry in entries:
        if entry:
            written = os.path.abspath(entry).rstrip(os.sep) or os.sep
            if written not in _resolved:
                _resolved[written] = os.path.realpath(written)
            seen.setdefault(written)
            seen.setdefault(_resolved[written])
    return list(seen)


def _stdlib_folders() -> list[str]:
    """As sysconfig's `stdlib` and `platstdlib`, which takes 5 ms to say so."""
    found = [os.path.dirname(os.__file__)]
    found += [os.path.dirname(entry) for entry in sys.path if str(entry).endswith("lib-dynload")]
    return found


def _site_folders() -> list[str]:
    import site

    folders = [os.path.join(sys.prefix, "Scripts" if os.name == "nt" else "bin")]
    try:
        folders += site.getsitepackages()
        folders.append(site.getusersitepackages())
    except ours_of(AttributeError, OSError, TypeError):
        pass  # an old virtualenv ships a `site` without these; sys.path names them, too
    # Debian's python adds dist-packages folders that only sys.path knows.
    folders += [entry for entry in sys.path if os.path.basename(str(entry)) in _INSTALLED]
    return folders


def _frozen_archives() -> list[str]:
    """The zipped standard library (`python311.zip`), where there is one on the path."""
    name = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    return [entry for entry in sys.path if os.path.basename(str(entry)) == name]


def _editable_folders(installed: list[str]) -> list[str]:
    found: list[str] = []
    for folder in installed:
        try:
            files = sorted(name for name in os.listdir(folder) if name.endswith(".pth"))[:_PTH_FILES_MAX]
        except ours_of(OSError):
            continue
        for file in files:
            found += _pth_entries(folder, file)
    # Packages also name folders of their own in this way (pywin32): these stay installed.
    return [entry for entry in found if not any(entry.startswith(folder) for folder in installed)]


def _pth_entries(folder: str, file: str) -> list[str]:
    try:
        with open(os.path.join(folder, file), "rb") as opened:
            text = opened.read(_PTH_BYTES_MAX).decode("utf-8", "replace")
    except ours_of(OSError):
        return []
    # site.addpackage: `import` lines are code, `#` lines are comments, all others are folders.
    lines = [line.strip() for line in text.splitlines()]
    entries = [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
    folders = [os.path.abspath(os.path.join(folder, entry)) for entry in entries if "\0" not in entry]
    return [entry for entry in folders if os.path.isdir(entry)]


def is_ours(path: str) -> bool:
    """Whether no other user can change where the path leads: root owns it, all folders above it, and all that
    links on the way lead through. Always True for other users than root, who risk no more than their own
    rights, and outside of Linux."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return True
    above, here, names, links = "", "", steps(os.path.abspath(path)), 0
    try:
        if os.lstat("/").st_uid:
            return False
        while names:
            above, here = here, f"{here}/{names.pop()}"
            facts = os.lstat(here)
            target = link_target(here, facts)
            links += target is not None
            if facts.st_uid or links > LINKS_MAX or (target is None and os.stat(here).st_uid):
                return False
            if target is not None:
                names += steps(target)
                here = "" if target.startswith("/") else above
    except ours_of(FileNotFoundError, NotADirectoryError):
        return True  # nothing is there yet
    except ours_of(PermissionError):
        # A folder of root's that it may not enter; else what another user has mounted.
        return not os.access(above or "/", os.X_OK)
    except ours_of(OSError):
        return False
    return True


def steps(path: str) -> list[str]:
    """The names in a path, the last first."""
    return [name for name in reversed(path.split("/")) if name]


def link_target(name: str, facts: os.stat_result, folder: int | None = None) -> str | None:
    """The path by which a link leads; None where it is not a link, or one of /proc, which lead without a
    path.

    `facts`: what lstat says of it. `folder`: a descriptor of the one it is in."""
    if not stat.S_ISLNK(facts.st_mode):
        return None
    try:
        if facts.st_dev == os.lstat("/proc/self").st_dev:
            return None
    except ours_of(OSError):
        pass  # no /proc
    return os.readlink(name, dir_fd=folder)


def is_mine(facts: os.stat_result) -> bool:
    """Whether this user or root owns it. True where files have no owners."""
    return not hasattr(os, "geteuid") or facts.st_uid in (0, os.geteuid())


def is_anothers(folder: str) -> bool:
    """Whether a folder or a link is there that another user has made, who could read and change what is
    stored in it. For root `is_ours` says more."""
    try:
        return not is_mine(os.lstat(folder)) or (
            os.name == "posix" and os.stat(folder).st_uid != os.geteuid()
        )
    except ours_of(OSError):
        return False


def working_folder() -> str:
    """The working folder, absolute; empty where there is none."""
    try:
        return os.getcwd()
    except ours_of(OSError):
        return ""  # it was removed under the process


def _main_file() -> str:
    argument = sys.argv[0] if getattr(sys, "argv", None) else ""
    if argument == "-c":
        return "<string>"
    if argument in ("", "-"):
        return "<stdin>"
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else ""
