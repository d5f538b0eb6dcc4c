"""Profilers that go by frame pointers see the whole stack of a watched program (PEP 831)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig

import pytest

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(
        "-fno-omit-frame-pointer" not in (sysconfig.get_config_var("CFLAGS") or ""),
        reason="this CPython is built without frame pointers",
    ),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]

WALK = """\
#include <Python.h>
#include <dlfcn.h>
#include <pthread.h>

/* The files of the calling functions, innermost first, by frame pointers alone. */
static PyObject *walk(PyObject *module, PyObject *none)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    PyObject *files = PyList_New(0);
    for (char **frame = __builtin_frame_address(0);
         (char *)frame > (char *)low && (char *)(frame + 2) <= (char *)low + size; frame = (char **)*frame) {
        Dl_info found;
        PyObject *file = PyUnicode_FromString(dladdr(frame[1], &found) ? found.dli_fname : "");
        PyList_Append(files, file);
        Py_DECREF(file);
        if (*frame <= (char *)frame) {
            break;
        }
    }
    return files;
}

static PyMethodDef methods[] = {{"walk", walk, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "walking", NULL, -1, methods};
PyMODINIT_FUNC PyInit_walking(void) { return PyModule_Create(&definition); }
"""
PROGRAM = """\
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import walking
if sys.argv[2] == "watched":
    import loopcanary
    loopcanary.install()

async def main():
    found = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: found.set_result(walking.walk()))
    files = await found
    print(any("_native" in file for file in files), any("libc.so" in file for file in files))

asyncio.run(main())
"""


def test_the_stack_is_whole_by_frame_pointers(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOPCANARY_STORE", str(tmp_path / "store"))
    (tmp_path / "walking.c").write_text(WALK)
    include, target = sysconfig.get_path("include"), f"walking{sysconfig.get_config_var('EXT_SUFFIX')}"
    options = ["-D_GNU_SOURCE", "-fno-omit-frame-pointer", "-shared", "-fPIC", f"-I{include}"]
    subprocess.run(["cc", *options, "walking.c", "-o", target], cwd=tmp_path, check=True)

    def run(how: str) -> list[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), how]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    # The C library starts the interpreter.
    assert run("plain") == ["False", "True"]
    assert run("watched") == ["True", "True"]
