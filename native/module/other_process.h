/* What the bindings of another process share: the handle that `outside_open` gives. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include "module/bindings.h"

#include "cpython/gil/threads.h"
#include "cpython/source/outside.h"

#define LC_OTHER_PROCESS "loopcanary.other_process" /* name of the capsule */

enum { LC_OTHER_INTERPRETERS_MAX = 64, LC_OTHER_THREADS_MAX = 4096 };

typedef struct {
    lc_memory_reader reader;
    lc_cpython_source source;
    lc_outside_addresses addresses;
    uint64_t main_interpreter; /* this and the threads: as outside_threads found them last */
    uint32_t thread_count;
    lc_thread_ref threads[LC_OTHER_THREADS_MAX];
    lc_stack stack;
} lc_other_process;

static inline PyObject *lc_text_object(lc_text text)
{
    return PyUnicode_DecodeUTF8(text.bytes == NULL ? "" : text.bytes, (Py_ssize_t)text.length, "replace");
}
