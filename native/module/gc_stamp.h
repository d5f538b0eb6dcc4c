/* Stamps of garbage collections: a C function for `gc.callbacks`. */
#pragma once

#include <Python.h>

/* gc_stamp(phase, info): as gc.callbacks calls it, on the collecting thread, under the GIL. */
PyObject *lc_gc_stamp(PyObject *module, PyObject *const *args, Py_ssize_t count);
