/* --fail-on-stall: the process's exit status, where it would have been 0. */
#ifndef LOOPCANARY_EXIT_STATUS_H
#define LOOPCANARY_EXIT_STATUS_H

#include <Python.h>

/* fail_exit(status): from now on a process that would end with 0 ends with `status`; 0 takes it back. */
PyObject *lc_fail_exit(PyObject *module, PyObject *status);

#endif
