"""Hooked waits (native/probes/hooks/wait_hook.h), in a library that is compiled here, by a loop of
our own."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
from _ctypes import dlclose

import pytest
from tests.patches.everything import Objects

import loopcanary

native = pytest.importorskip("loopcanary._native", reason="needs the C core")

COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

SOURCE = """
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static void tell(void *pipe) { (void)!write((int)(intptr_t)pipe, "", 1); }
void until_cancelled(int pipe)
{
    pthread_cleanup_push(tell, (void *)(intptr_t)pipe);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
    tell((void *)(intptr_t)pipe);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
    poll(0, 0, -1);
    pthread_cleanup_pop(0);
}
int by_poll(int ms) { return poll(0, 0, ms); }
int by_ppoll(int ms)
{
    struct timespec time = {0, ms * 1000000L};
    return ppoll(0, 0, &time, 0);
}
int by_select(int ms)
{
    struct timeval time = {0, ms * 1000L};
    return select(0, 0, 0, 0, &time);
}
int by_pselect(int ms)
{
    struct timespec time = {0, ms * 1000000L};
    return pselect(0, 0, 0, 0, &time, 0);
}
int by_epoll_wait(int ms)
{
    struct epoll_event event;
    static int fd = -1;
    fd = fd < 0 ? epoll_create1(EPOLL_CLOEXEC) : fd;
    return epoll_wait(fd, &event, 1, ms);
}
int by_epoll_pwait(int ms)
{
    struct epoll_event event;
    static int fd = -1;
    fd = fd < 0 ? epoll_create1(EPOLL_CLOEXEC) : fd;
    return epoll_pwait(fd, &event, 1, ms, 0);
}
"""
WAITS = ("epoll_wait", "epoll_pwait", "poll", "ppoll", "select", "pselect")
MS = 20


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("got")
    (folder / "waits.c").write_text(SOURCE)
    built = folder / f"waits{sysconfig.get_config_var('EXT_SUFFIX') or '.so'}"
    words = [COMPILER, "-shared", "-fPIC", "-O1", str(folder / "waits.c"), "-o", str(built)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"the compiler builds no libraries: {done.stderr[:200]}")
    return built


@pytest.fixture
def library(compiled, tmp_path):
    """A copy of its own for each test: what is hooked is a file's table in this process."""
    own = shutil.copy(compiled, tmp_path / compiled.name)
    yield ctypes.CDLL(str(own))
    while str(own) in {path for path, _ in Objects().calls()}:
        native.unhook_waits(str(own))


@pytest.fixture
def canary(tmp_path):
    yield loopcanary.install(threshold="1h", store=str(tmp_path / "store"), console=False)
    loopcanary.uninstall()


def path_of(library):
    return library._name


def turns(canary):
    return next(loop for loop in canary.loops() if loop.kind == "novel").turns


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_ends_one_turn_and_begins_the_next(canary, library, wait):
    call = getattr(library, f"by_{wait}")
    assert set(native.hook_waits(path_of(library))) == set(WAITS)
    hooks = native.LoopHooks("novel")
    hooks.run_begin()
    for _ in range(3):
        assert call(MS) == 0
    hooks.run_end()
    assert turns(canary) == 4


def test_a_wait_inside_a_callback_is_the_callback_s(canary, library):
    native.hook_waits(path_of(library))
    hooks = native.LoopHooks("novel")
    hooks.run_begin()
    hooks.work_begin("asks a server")
    library.by_poll(MS)
    hooks.work_end()
    hooks.run_end()
    assert turns(canary) == 1


def test_a_wait_of_a_thread_without_a_loop_means_nothing(canary, library):
    native.hook_waits(path_of(library))
    hooks = native.LoopHooks("novel")
    hooks.run_begin()
    thread = threading.Thread(target=library.by_poll, args=(MS,))
    thread.start()
    thread.join()
    hooks.run_end()
    library.by_poll(MS)
    assert turns(canary) == 1


def test_hooks_are_listed_counted_and_taken_back(library):
    path = path_of(library)
    mine = {(path, name) for name in WAITS}
    assert native.hook_waits(path) == native.hook_waits(path) == WAITS
    assert {row for row in Objects().calls() if row[0] == path} == mine
    native.unhook_waits(path)
    assert {row for row in Objects().calls() if row[0] == path} == mine
    native.unhook_waits(path)
    assert {row for row in Objects().calls() if row[0] == path} == set()
    native.unhook_waits(path)
    assert library.by_poll(0) == 0


def test_an_object_is_found_by_address_or_path_end(library):
    address = ctypes.cast(library.by_poll, ctypes.c_void_p).value
    end = "/".join(path_of(library).split("/")[-2:])
    assert native.hook_waits(address) == native.hook_waits(end) == WAITS
    native.unhook_waits(end)
    native.unhook_waits(address)
    assert path_of(library) not in {path for path, _ in Objects().calls()}


def test_what_is_not_there_is_not_hooked():
    before = Objects().calls()
    assert native.hook_waits("no-such-library.so.7") == ()
    assert native.hook_waits(8) == ()
    native.unhook_waits("no-such-library.so.7")
    assert Objects().calls() == before
    with pytest.raises(TypeError):
        native.hook_waits(None)


def test_several_objects_at_once(library, compiled, tmp_path):
    other = ctypes.CDLL(str(shutil.copy(compiled, tmp_path / f"other-{compiled.name}")))
    for each in (library, other):
        assert native.hook_waits(path_of(each)) == WAITS
    assert {path_of(library), path_of(other)} <= {path for path, _ in Objects().calls()}
    native.unhook_waits(path_of(other))
    assert path_of(library) in {path for path, _ in Objects().calls()}
    assert other.by_poll(0) == library.by_poll(0) == 0


def test_a_reloaded_library_is_hooked_anew(compiled, tmp_path):
    for number in range(50):  # more than are hooked at once
        path = str(shutil.copy(compiled, tmp_path / f"{number // 2}-{compiled.name}"))
        library = ctypes.CDLL(path)
        assert native.hook_waits(path) == WAITS
        dlclose(library._handle)
        assert path not in {hooked for hooked, _ in Objects().calls()}


def test_the_engine_stops_while_a_thread_is_inside_a_hooked_wait(tmp_path, library):
    loopcanary.install(threshold="1h", store=str(tmp_path / "store"), console=False)
    native.hook_waits(path_of(library))
    waits = threading.Event()

    def loop():
        hooks = native.LoopHooks("novel")
        hooks.run_begin()
        waits.set()
        library.by_poll(300)
        library.by_poll(1)
        hooks.run_end()

    thread = threading.Thread(target=loop)
    thread.start()
    waits.wait()
    time.sleep(0.05)
    loopcanary.uninstall()
    native.unhook_waits(path_of(library))
    thread.join()
    assert library.by_poll(0) == 0


def test_a_forked_child_goes_on_waiting(canary, library):
    native.hook_waits(path_of(library))
    hooks = native.LoopHooks("novel")
    hooks.run_begin()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's own thread, which dumps stacks
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if library.by_poll(1) == 0 else 2)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    hooks.run_end()
    assert os.waitstatus_to_exitcode(status) == 0


CANCELLED = """
import ctypes, os, sys, threading
import loopcanary
from loopcanary import _native

def mappings(name=""):
    lines = [line for line in open("/proc/self/maps") if name in line]
    return [tuple(int(end, 16) for end in line.split()[0].split("-")) for line in lines]

library = ctypes.CDLL(sys.argv[1])
loopcanary.install(threshold="1h", store=sys.argv[2], console=False)
_native.hook_waits(sys.argv[1])
told, tell = os.pipe()

def work():
    _native.LoopHooks("novel").run_begin()
    library.until_cancelled(tell)

thread = threading.Thread(target=work, daemon=True)
thread.start()
os.read(told, 1)
((low, high),) = mappings(".flight\\n")
ctypes.CDLL(None).pthread_cancel(ctypes.c_ulong(thread.ident))
os.read(told, 1)
loopcanary.uninstall()
assert not any(begin <= low and high <= end for begin, end in mappings())
os._exit(0)  # CPython knows nothing of such ends
"""


def test_a_thread_cancelled_in_its_wait_stores_no_more(compiled, tmp_path):
    words = [sys.executable, "-c", CANCELLED, str(compiled), str(tmp_path / "store")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
