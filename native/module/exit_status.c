/* How the process ends: by os._exit or exec, which no handler sees; and --fail-on-stall, its exit status,
 * where it would have been 0.
 *
 * fail_exit(status): from now on a process that would end with 0 ends with `status`; 0 takes it back.
 *
 * noted_end(function): one that says in the flight file that the process ends, and calls this one, which
 * ends it; an exec may fail, and the process goes on. */
#define _DEFAULT_SOURCE
#include "module/bindings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/patches/patches.h"
#include "module/agent.h"
#include "probes/hooks/patched_function.h"

static _Atomic int wanted_status;
static pid_t asking_process; /* handlers are inherited by fork, the wish is not */

#if defined(__GLIBC__)
/* on_exit(3) runs after the interpreter's end, and is told the status: nothing of Python knows it. On Linux
 * a handler may call exit (atexit(3), NOTES): the handlers that are left, of libraries that were loaded
 * before us, run once, and stdio is flushed. */
static void replace_status(int status, void *Py_UNUSED(unused))
{
    const int wanted = atomic_load(&wanted_status);
    if (status == 0 && wanted != 0 && getpid() == asking_process) {
        exit(wanted);
    }
}
#endif

PyObject *lc_fail_exit(PyObject *Py_UNUSED(module), PyObject *status)
{
    const long wanted = PyLong_AsLong(status);
    if (wanted == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (wanted < 0 || wanted > 255) {
        return PyErr_Format(PyExc_ValueError, "%ld is not an exit status: give 0 to 255", wanted);
    }
#if defined(__GLIBC__)
    static bool registered; /* under the GIL */
    registered =
        registered || (on_exit(replace_status, NULL) == 0 && lc_patch_note("+hook on_exit, for good") != 0);
    asking_process = getpid();
    atomic_store(&wanted_status, (int)wanted);
    Py_RETURN_TRUE;
#else
    Py_RETURN_FALSE;
#endif
}

static void note_end(lc_process_state state)
{
    lc_agent *agent = &lc_the_agent;
    /* A forked child may not have let go of its parent's file yet. */
    if (agent->running && agent->flight.header->pid == (uint64_t)getpid()) {
        lc_flight_say(&agent->flight, state);
    }
}

static PyObject *end(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    note_end((lc_process_state)patch->role);
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    note_end(LC_PROCESS_RUNNING);
    return result;
}

PyObject *lc_noted_end(PyObject *Py_UNUSED(module), PyObject *original)
{
    PyObject *name = PyObject_GetAttrString(original, "__name__");
    if (name == NULL) {
        PyErr_Clear();
    }
    const bool exits =
        name != NULL && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "_exit") == 0;
    Py_XDECREF(name);
    return lc_patched_builtin_new(end, original, NULL, exits ? LC_PROCESS_EXITED : LC_PROCESS_ENDED);
}
