"""What a system call of another process's thread works on: the file, peer or child, by name.

As native/core/waits/wait_target.c does in the watched process itself, from /proc alone: nothing that the
descriptor stands for is opened or resolved.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

from loopcanary.model.waiting import Target, TargetKind
from loopcanary.outside.processes import Process

_ON_DESCRIPTOR = frozenset(
    {
        "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
        "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "connect", "accept", "accept4",
        "shutdown", "fsync", "fdatasync", "sync_file_range", "ftruncate", "fallocate", "flock", "fcntl",
        "ioctl", "getdents", "getdents64", "fstat", "close", "syncfs", "sendfile", "readahead", "fadvise64",
    }
)  # fmt: skip
_NAME_MAX = 512
_TABLE_BYTES = 8 << 20
_COMMAND_BYTES = 256


def target_of(process: Process, name: str, arguments: tuple[int, ...]) -> Target | None:
    """The target of a call; None: it has no name, or that is not known."""
    if not arguments:
        return None
    if name == "wait4":
        return _child(process, _signed(arguments[0]))
    if name == "waitid" and arguments[0] == os.P_PID and len(arguments) > 1:
        return _child(process, _signed(arguments[1]))
    return _descriptor(process, arguments[0] & 0xFFFFFFFF) if name in _ON_DESCRIPTOR else None


def _signed(word: int) -> int:
    return (word & 0xFFFFFFFF) - ((word & 0x80000000) << 1)


def _descriptor(process: Process, number: int) -> Target | None:
    try:
        path = str((process.folder / "fd" / str(number)).readlink())
    except OSError:
        return None
    kind, _, rest = path.partition(":[")
    inode = rest.removesuffix("]")
    if path.startswith("/"):
        terminal = path.startswith(("/dev/pts/", "/dev/tty", "/dev/console"))
        return Target(kind=TargetKind.TERMINAL if terminal else TargetKind.FILE, name=path[:_NAME_MAX])
    if kind == "socket":
        return Target(kind=TargetKind.SOCKET, name=_peer(process, inode))
    if kind == "pipe":
        return Target(kind=TargetKind.PIPE, name=inode)
    return Target(kind=TargetKind.OTHER, name=path[:_NAME_MAX])


def _child(process: Process, pid: int) -> Target | None:
    """A child by its number in the process's pid namespace, named if that is ours."""
    if pid <= 0 or process.inner_pid() != process.pid:
        return None
    try:
        with (process.proc / str(pid) / "cmdline").open("rb") as file:
            words = os.fsdecode(file.read(_COMMAND_BYTES)).split("\0")
    except OSError:
        words = []
    return Target(kind=TargetKind.CHILD, name=words[0].rpartition("/")[2] if words else "", pid=pid)


# ---- sockets ---------------------------------------------------------------------------------------


def _peer(process: Process, inode: str) -> str:
    """`10.0.0.5:5432`, or the path of a unix socket; empty: it has no peer, or that is not known."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6), ("udp", socket.AF_INET)):
        for fields in _rows(process, table):
            if len(fields) > 9 and fields[9] == inode:
                return _address(fields[2], family)
    for fields in _rows(process, "unix"):
        if len(fields) > 6 and fields[6] == inode:
            return fields[7][:_NAME_MAX] if len(fields) > 7 else ""
    return ""


def _rows(process: Process, table: str) -> list[list[str]]:
    try:
        with (process.folder / "net" / table).open("rb") as file:
            lines = file.read(_TABLE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.split() for line in lines[1:]]


def _address(text: str, family: int) -> str:
    """`0100007F:1F90` is 127.0.0.1:8080: words as the machine has them (proc(5))."""
    host, _, port = text.partition(":")
    try:
        words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
        raw = struct.pack(f"{'<' if sys.byteorder == 'little' else '>'}{len(words)}I", *words)
        number = int(port, 16)
        name = socket.inet_ntop(family, raw)
    except (OSError, ValueError, struct.error):
        return ""
    if number == 0:
        return ""
    return f"[{name}]:{number}" if family == socket.AF_INET6 else f"{name}:{number}"
