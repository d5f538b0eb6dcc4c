#include "module/keeper/errands.h"

#include "module/agent.h"
#include "module/quiet_thread.h"

static PyObject *hook; /* called without arguments; NULL: errands are not run. Under the GIL */

static PyObject *give_hook(void) { return Py_XNewRef(hook); }

bool lc_errand_run(void) { return lc_quiet_thread_call(give_hook); }

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
    {"on_errand", on_errand, METH_O,
     "on_errand(hook | None): called without arguments, on a thread of ours, when a command has an errand "
     "here."},
    {"errand_at", errand_at, METH_O,
     "errand_at(monotonic_ns): the hook is called then, too, if the engine still runs; 0: at no time."},
    {NULL, NULL, 0, NULL},
};

int lc_errands_add(PyObject *module) { return PyModule_AddFunctions(module, functions); }
