#include "module/keeper/errands.h"

#include <sys/prctl.h>

#include "module/agent.h"
#include "module/quiet_thread.h"
#include "module/thread_lane.h"

static PyObject *hook; /* called without arguments; NULL: errands are not run. Under the GIL */

static uint64_t generation_now(void) { return __atomic_load_n(&lc_the_agent.generation, __ATOMIC_SEQ_CST); }

/* The engine may have ended meanwhile, and the interpreter with it. */
static void *call_hook(void *generation)
{
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    lc_thread_is_ours = true;
    if (generation_now() != (uintptr_t)generation) {
        return NULL;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *called = Py_XNewRef(hook);
    PyObject *result = called == NULL ? NULL : PyObject_CallNoArgs(called);
    if (called != NULL && result == NULL) {
        PyErr_WriteUnraisable(called);
    }
    Py_XDECREF(result);
    Py_XDECREF(called);
    PyGILState_Release(state);
    return NULL;
}

bool lc_errand_run(void) { return lc_quiet_thread_start(call_hook, (void *)(uintptr_t)generation_now()) == 0; }

static PyObject *on_errand(PyObject *Py_UNUSED(module), PyObject *called)
{
    Py_XSETREF(hook, called == Py_None ? NULL : Py_NewRef(called));
    Py_RETURN_NONE;
}

static PyObject *errand_at(PyObject *Py_UNUSED(module), PyObject *ns)
{
    const unsigned long long at_ns = PyLong_AsUnsignedLongLong(ns);
    if (PyErr_Occurred()) {
        return NULL;
    }
    atomic_store(&lc_the_agent.watchdog.errand_ns, at_ns);
    lc_bell_ring(&lc_the_agent.watchdog.bell); /* one that is parked sleeps without a deadline */
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"on_errand", on_errand, METH_O, "on_errand(hook | None): called without arguments, on a thread of ours, when a command has an errand here."},
    {"errand_at", errand_at, METH_O, "errand_at(monotonic_ns): the hook is called then, too, if the engine still runs; 0: at no time."},
    {NULL, NULL, 0, NULL},
};

int lc_errands_add(PyObject *module) { return PyModule_AddFunctions(module, functions); }
