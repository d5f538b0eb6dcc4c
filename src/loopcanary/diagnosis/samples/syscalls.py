"""Names of system calls by machine, and what kind of waiting each one is. Data.

Numbers: Linux 6.1, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h. The kernel
never gives a number a new meaning. Only calls that a thread can wait in are listed.
"""

from __future__ import annotations

from collections.abc import Mapping

_TABLE = """
read 0 63, write 1 64, open 2 -, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, poll 7 -, mmap 9 222,
mprotect 10 226, munmap 11 215, brk 12 214, ioctl 16 29, pread64 17 67, pwrite64 18 68, readv 19 65,
writev 20 66, access 21 -, select 23 -, sched_yield 24 124, msync 26 227, madvise 28 233, pause 34 -,
nanosleep 35 101, sendfile 40 71, connect 42 203, accept 43 202, sendto 44 206, recvfrom 45 207,
sendmsg 46 211, recvmsg 47 212, shutdown 48 210, clone 56 220, vfork 58 -, execve 59 221, wait4 61 260,
semop 65 193, fcntl 72 25, flock 73 32, fsync 74 82, fdatasync 75 83, truncate 76 45, ftruncate 77 46,
getdents 78 -, rename 82 -, mkdir 83 -, rmdir 84 -, creat 85 -, link 86 -, unlink 87 -, symlink 88 -,
readlink 89 -, rt_sigtimedwait 128 137, rt_sigsuspend 130 133, sync 162 81, readahead 187 213,
futex 202 98, io_getevents 208 4, getdents64 217 61, semtimedop 220 192, fadvise64 221 223,
clock_nanosleep 230 115, epoll_wait 232 -, waitid 247 95, openat 257 56, mkdirat 258 34,
newfstatat 262 79, unlinkat 263 35, renameat 264 38, linkat 265 37, symlinkat 266 36, readlinkat 267 78,
faccessat 269 48, pselect6 270 72, ppoll 271 73, splice 275 76, sync_file_range 277 84,
epoll_pwait 281 22, fallocate 285 47, accept4 288 242, preadv 295 69, pwritev 296 70, recvmmsg 299 243,
syncfs 306 267, sendmmsg 307 269, renameat2 316 276, getrandom 318 278, copy_file_range 326 285,
preadv2 327 286, pwritev2 328 287, statx 332 291, io_uring_enter 426 426, clone3 435 435,
openat2 437 437, faccessat2 439 439, epoll_pwait2 441 441, futex_waitv 449 449, futex_wait 455 455
"""
"""Name, number on x86-64, number on aarch64; `-`: it has none."""


def _numbers(column: int) -> dict[int, str]:
    rows = [row.split() for row in _TABLE.replace("\n", " ").split(",")]
    return {int(row[column]): row[0] for row in rows if row[column] != "-"}


_X86_64, _AARCH64 = _numbers(1), _numbers(2)
_MACHINES: Mapping[str, Mapping[int, str]] = {
    "x86_64": _X86_64,
    "amd64": _X86_64,
    "aarch64": _AARCH64,
    "arm64": _AARCH64,
}


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


FILE_CALLS = _named(
    "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 open openat openat2 creat "
    "close stat fstat lstat newfstatat statx access faccessat faccessat2 getdents getdents64 fsync "
    "fdatasync sync syncfs sync_file_range msync ftruncate truncate fallocate rename renameat renameat2 "
    "unlink unlinkat mkdir mkdirat rmdir link linkat symlink symlinkat readlink readlinkat "
    "copy_file_range splice fadvise64 readahead io_uring_enter io_getevents"
)
"""Work on files. `read` and `write` also serve pipes and, under OpenSSL, sockets: see STREAM."""
NETWORK_CALLS = _named(
    "connect accept accept4 recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg sendfile poll ppoll "
    "select pselect6 epoll_wait epoll_pwait epoll_pwait2 shutdown"
)
"""Waiting for a socket, or for readiness of one."""
CHILD_CALLS = _named("wait4 waitid vfork clone clone3 execve")
"""Starting a child process or waiting for one."""
SLEEP_CALLS = _named("nanosleep clock_nanosleep pause rt_sigtimedwait rt_sigsuspend")
"""Waiting for time, or for a signal."""
FUTEX_CALLS = _named("futex futex_wait futex_waitv")
"""What locks, conditions and the GIL sleep in."""
LOCK_CALLS = _named("flock semop semtimedop")
"""Locks between processes."""
LOCK_COMMANDS = frozenset({7, 38})
"""Likewise, of `fcntl` (second argument): F_SETLKW and F_OFD_SETLKW."""
SELECT_CALLS = _named("select pselect6")
"""With no descriptor (first argument 0) these are sleeps."""
POLL_CALLS = _named("poll ppoll")
"""With no descriptor (second argument 0) these are sleeps."""
READ_CALLS = _named("read readv")
WRITE_CALLS = _named("write writev")
OPEN_CALLS = _named("open openat openat2 creat")
STREAM_CALLS: frozenset[str] = READ_CALLS | WRITE_CALLS
"""Calls that say nothing of what is behind the descriptor."""

WAIT_CALLS: frozenset[str] = SELECT_CALLS | POLL_CALLS
"""Waiting for readiness of any descriptor."""


def syscall_name(number: int | None, machine: str) -> str | None:
    """Name of a system call of a machine (`x86_64`, `aarch64`, as platform.machine() says); None where the
    number, the machine or its name is unknown."""
    return None if number is None else _MACHINES.get(machine.lower(), {}).get(number)
