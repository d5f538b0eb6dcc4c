/* How the process ends: by os._exit or exec, which no handler sees; and --fail-on-stall, its exit status,
 * where it would have been 0. */
#pragma once

#include <Python.h>

/* fail_exit(status): from now on a process that would end with 0 ends with `status`; 0 takes it back. */
PyObject *lc_fail_exit(PyObject *module, PyObject *status);

/* noted_end(function): one that says in the flight file that the process ends, and calls this one, which
 * ends it; an exec may fail, and the process goes on. */
PyObject *lc_noted_end(PyObject *module, PyObject *original);
