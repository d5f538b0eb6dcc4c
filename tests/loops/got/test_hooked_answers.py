"""Hooked calls of OpenSSL (native/probes/answers/hook.h), by libraries that are compiled here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("loopcanary._native", reason="needs the C core")

COMPILER = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

# An OpenSSL, or who stands before it: it writes its number.
LIBRARY = """
#include <stddef.h>
#include <string.h>
int SSL_get_fd(const void *session) { (void)session; return -1; }
int SSL_read_ex(void *session, void *data, size_t room, size_t *bytes)
{
    (void)session;
    memset(data, NUMBER, room);
    *bytes = room;
    return 1;
}
int SSL_write_ex(void *session, const void *data, size_t bytes, size_t *written)
{
    (void)session, (void)data;
    *written = bytes;
    return 1;
}
"""
CALLER = """
#include <stddef.h>
int SSL_read_ex(void *session, void *data, size_t room, size_t *bytes);
int SSL_write_ex(void *session, const void *data, size_t bytes, size_t *written);
char session;
int read_by_it(void)
{
    char data[8];
    size_t bytes;
    return SSL_read_ex(&session, data, sizeof data, &bytes) == 1 ? data[0] : -1;
}
int write_by_it(void)
{
    size_t bytes;
    return SSL_write_ex(&session, "", 1, &bytes);
}
"""
ASKS = """
import ctypes, os, sys
from loopcanary import _native

path, way = sys.argv[1:]
open_library = ctypes.CDLL(None).dlopen
open_library.argtypes, open_library.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
handle = open_library(path.encode(), os.RTLD_LAZY if way == "lazy" else os.RTLD_NOW)  # CDLL binds at once
caller = ctypes.CDLL(path, handle=handle)
hooked = [name for name in _native.hook_answers(path) if name.startswith("SSL_")]
print(*hooked, caller.read_by_it(), caller.write_by_it())
_native.unhook_answers(path)
print(caller.read_by_it())
"""
BOTH = "SSL_read_ex SSL_write_ex"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openssl")

    def build(name, text, *options):
        (folder / f"{name}.c").write_text(text)
        command = [COMPILER, "-shared", "-fPIC", "-fplt", "-Wl,-z,lazy", "-o", f"{name}.so", f"{name}.c"]
        subprocess.run([*command, *options], cwd=folder, check=True)

    build("linked", LIBRARY, "-DNUMBER=1", "-Wl,-soname,linked.so")
    build("first", LIBRARY, "-DNUMBER=2")
    build("caller", CALLER, "./linked.so", "-Wl,-rpath,$ORIGIN")
    return folder


@pytest.mark.parametrize(
    ("way", "preloaded", "told"),
    [
        ("lazy", False, [f"{BOTH} 1 1", "1"]),
        ("now", False, [f"{BOTH} 1 1", "1"]),
        ("lazy", True, ["2 1", "2"]),
        ("now", True, [f"{BOTH} 2 1", "2"]),
    ],
)
def test_calls_go_where_the_linker_would_have_them_go(libraries, package_path, way, preloaded, told):
    environment = os.environ | {"PYTHONPATH": str(package_path)}
    if preloaded:
        before = os.environ.get("LD_PRELOAD", "")
        environment["LD_PRELOAD"] = f"{before} {libraries / 'first.so'}".strip()
    ended = subprocess.run(
        [sys.executable, "-c", ASKS, libraries / "caller.so", way],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stdout.splitlines() == told
