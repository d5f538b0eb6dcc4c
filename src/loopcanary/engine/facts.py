"""Facts of the watched process: what a report says of where it ran.

Every fact is read for itself and falls back to empty: a missing /proc, a sandbox or an odd platform costs
that fact, never the session. Nothing here identifies a user; what does (user id, network) comes from the
configuration only. Arguments of the program are never read into a fact.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

from loopcanary.model.config import Config
from loopcanary.model.session import Session

_T = TypeVar("_T")
_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalPy"}
_CGROUP_LEVELS_MAX = 64
_UNLIMITED_BYTES = 1 << 60
"""cgroup v1 writes "no limit" as the largest multiple of a page below 2^63."""


def session_facts(config: Config, *, engine: str = "", command: str | None = None) -> Session:
    """The session of this process, as it begins.

    `engine`: name of the backend that watches. `command`: the program, where the caller knows it better
    than `sys` (a runner that has not started it yet). Never raises; below 5 ms. Any thread.
    """
    now_wall_ns = time.time_ns()
    pid = os.getpid()
    command = command or _or(program, "")
    limits = _or(cgroup_limits, CgroupLimits())
    return Session(
        id=session_id(now_wall_ns, pid, os.urandom(2)),
        name=config.name or _or(lambda: program_name(command), ""),
        pid=pid,
        parent_pid=_or(os.getppid, 0),
        host=_or(_host, ""),
        python=_or(_python, ""),
        engine=engine,
        started_wall_ns=now_wall_ns,
        threshold_ns=config.threshold_ns,
        version=config.version,
        qualifier=config.qualifier,
        user=config.user,
        network=config.network,
        command=command,
        machine=_or(_machine, ""),
        system=_or(_system, ""),
        cores=_or(_cores, 0),
        memory_bytes=_or(_memory_bytes, 0),
        memory_limit_bytes=limits.memory_bytes,
        cpu_limit=limits.cores,
    )


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
    path = PurePath(command)
    # What `-m package` makes of sys.argv, and children of multiprocessing take over.
    return path.parent.name if path.name == "__main__.py" and path.parent.name else path.name


class _Mount(NamedTuple):
    """A cgroup hierarchy that is mounted: which part of it (`root`), and where."""

    root: str
    point: Path


class CgroupLimits(NamedTuple):
    """What the cgroups grant; None: as much as there is."""

    memory_bytes: int | None = None
    cores: float | None = None


def cgroup_limits(root: Path = Path("/")) -> CgroupLimits:
    """Memory and cores that the cgroups grant this process.

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
    return CgroupLimits(min(memory, default=None), min(cores, default=None))


def _groups(root: Path) -> Iterator[tuple[list[str], str]]:
    """(controllers, group) of each hierarchy; version 2 has the controller ""."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        yield controllers.split(","), group


def _cgroup_mounts(root: Path) -> dict[str, _Mount]:
    mounts: dict[str, _Mount] = {}
    for line in _read(root / "proc/self/mountinfo").splitlines():
        match line.replace(" - ", " ", 1).split() if " - cgroup" in line else ():
            case (_, _, _, group, point, *_, kind, _, options):
                mount = _Mount(group, root / point.lstrip("/"))
                for controller in [""] if kind == "cgroup2" else options.split(","):
                    mounts.setdefault(controller, mount)
    return mounts


def _levels(mount: _Mount, group: str) -> Iterator[Path]:
    """Folders of the group and of those above it, as far as they are mounted."""
    inside = group.removeprefix(mount.root.rstrip("/")).strip("/")
    # In a container the group's path may be the host's, which is not mounted here: its own is at the top.
    steps = [step for step in inside.split("/") if step not in ("", "..")][:_CGROUP_LEVELS_MAX]
    for count in range(len(steps), -1, -1):
        folder = mount.point.joinpath(*steps[:count])
        if folder.is_dir():
            yield folder


def _memory_limits(folder: Path) -> Iterable[int]:
    for name in ("memory.max", "memory.limit_in_bytes"):
        text = _read(folder / name).strip()
        if text.isdigit() and int(text) < _UNLIMITED_BYTES:
            yield int(text)


def _core_limits(folder: Path) -> Iterable[float]:
    quotas = [
        _read(folder / "cpu.max").split(),
        [*_read(folder / "cpu.cfs_quota_us").split(), *_read(folder / "cpu.cfs_period_us").split()],
    ]
    for words in quotas:
        match words:
            # "max" and -1 mean no quota.
            case (quota, period) if quota.isdigit() and period.isdigit() and int(period):
                yield int(quota) / int(period)


def _host() -> str:
    if hasattr(os, "uname"):
        return os.uname().nodename
    import platform  # only where the cheaper source is missing

    return platform.node()


def _machine() -> str:
    if hasattr(os, "uname"):
        return os.uname().machine
    import platform

    return platform.machine()


def _system() -> str:
    if hasattr(os, "uname"):
        return f"{os.uname().sysname} {os.uname().release}"
    import platform

    return f"{platform.system()} {platform.release()}"


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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _or(read: Callable[[], _T], empty: _T) -> _T:
    """The fact, or `empty` where it cannot be had."""
    try:
        return read()
    except Exception:  # noqa: BLE001 - a fact is worth less than the program that is watched
        return empty
