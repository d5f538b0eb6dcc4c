"""A disk that does not answer: where no keeper serves, it holds up the watchdog's checkpoint, and nothing
waits for that; where one does, no thread of ours in the program touches it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here"),
]

# The first write to a checkpoint says so in one pipe, and waits for the end of another.
_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t function(int, const void *, size_t, off64_t);

static void wait_for_disk(int fd)
{
    static _Atomic int waited;
    char link[64], path[4096], byte;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (strstr(path, ".saved") != NULL && waited++ == 0) {
        close(open(getenv("DISK_BEGUN"), O_WRONLY));
        const int over = open(getenv("DISK_OVER"), O_RDONLY);
        while (read(over, &byte, 1) > 0) {
        }
        close(over);
    }
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    wait_for_disk(fd);
    return ((function *)dlsym(RTLD_NEXT, "pwrite"))(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    wait_for_disk(fd);
    return ((function *)dlsym(RTLD_NEXT, "pwrite64"))(fd, bytes, count, at);
}
"""
_HANG = """
    from loopcanary.engine import native
    native.HANG_NS = 150_000_000

    async def hang(then):
        await asyncio.sleep(0)
        open(os.environ["DISK_BEGUN"]).read()  # until the checkpoint is being written
        then()
"""


@pytest.fixture
def disk(tmp_path) -> dict[str, str]:
    """The environment of a program whose checkpoints go to that disk."""
    source, library = tmp_path / "disk.c", tmp_path / "disk.so"
    source.write_text(_DISK, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"], check=True)
    pipes = {"DISK_BEGUN": str(tmp_path / "begun"), "DISK_OVER": str(tmp_path / "over")}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    return {"LOOPCANARY_KEEPER": "0", "LD_PRELOAD": str(library), **pipes}


def test_neither_fork_nor_exit_waits_for_it(place, disk):
    program = place.program(
        _HANG
        + """
    def fork():
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    asyncio.run(hang(fork))
    """
    )
    place.run(program, **disk)
    assert "hang" in {stall.culprit.function for stall in place.stalls() if stall.culprit}
    assert place.left_behind() == []


def test_watching_goes_on_where_it_answers_after_a_fork(place, disk):
    program = place.program(
        _HANG
        + """
    def fork():
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        open(os.environ["DISK_OVER"], "w").close()
    asyncio.run(hang(fork))
    stall("after")
    """
    )
    place.run(program, **disk)
    assert place.culprits() == ["after"]


def test_the_next_engine_is_the_portable_one(place, disk):
    """The watchdog that waits still has the memory of its engine."""
    program = place.program(
        _HANG
        + """
    import loopcanary
    asyncio.run(hang(loopcanary.uninstall))
    canary = loopcanary.install(threshold="100ms")
    stall("after")
    assert canary.backend.name == "portable"
    """
    )
    done = place.run(program, **disk)
    assert "a disk that does not answer; the portable one is used" in done.stderr
    assert place.culprits() == ["after"]


# What a thread other than the first opens, looks at or makes in the store never comes back.
_DEAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_disk(const char *path)
{
    const char *const store = getenv("LOOPCANARY_STORE");
    const int is_in_store = path != NULL && store != NULL && strncmp(path, store, strlen(store)) == 0;
    if (is_in_store && syscall(SYS_gettid) != getpid()) {
        for (;;) { /* as in an uninterruptible sleep: no handler runs */
            static const unsigned long all = ~0ul;
            syscall(SYS_rt_sigprocmask, 0, &all, NULL, 8);
            pause();
        }
    }
}

#define DEAD(name, declared, passed, path) \
    int name declared \
    { \
        int (*next) declared = dlsym(RTLD_NEXT, #name); \
        wait_for_disk(path); \
        return next passed; \
    }
DEAD(open, (const char *p, int f, int m), (p, f, m), p)
DEAD(open64, (const char *p, int f, int m), (p, f, m), p)
DEAD(openat, (int d, const char *p, int f, int m), (d, p, f, m), p)
DEAD(openat64, (int d, const char *p, int f, int m), (d, p, f, m), p)
DEAD(mkdir, (const char *p, int m), (p, m), p)
DEAD(symlink, (const char *to, const char *p), (to, p), p)
DEAD(access, (const char *p, int m), (p, m), p)
DEAD(lstat, (const char *p, void *s), (p, s), p)
DEAD(lstat64, (const char *p, void *s), (p, s), p)
DEAD(stat, (const char *p, void *s), (p, s), p)
DEAD(stat64, (const char *p, void *s), (p, s), p)
DEAD(utimensat, (int d, const char *p, void *t, int f), (d, p, t, f), p)
"""


def test_where_a_keeper_serves_setuid_waits_for_no_disk(place, tmp_path):
    source, library = tmp_path / "dead.c", tmp_path / "dead.so"
    source.write_text(_DEAD, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-w", str(source), "-o", str(library), "-ldl"], check=True)
    program = place.program(
        """
    async def hang():
        block("hang", 1.3)  # long enough for all that a hang brings about
    asyncio.run(hang())
    os.setgroups(os.getgroups()) if os.geteuid() == 0 else None
    os.setgid(os.getgid())
    os.setuid(os.getuid())
    """
    )
    place.run(program, LD_PRELOAD=str(library))
    assert place.culprits() == ["hang"]
