/* What runs GLib's loop, and the functions that idle and timeout sources call. */
#ifndef LOOPCANARY_GLIB_LOOP_H
#define LOOPCANARY_GLIB_LOOP_H

#include <Python.h>

/* glib_run(original, seen, boxed_type | None) -> PatchedFunction around what runs the loop until it returns: a method of
 * objects of `boxed_type` (gi's type of boxed values; of a GMainLoop) or anything else. `seen()` is called at each
 * run's begin, and raises nothing. */
PyObject *lc_glib_run(PyObject *module, PyObject *args);

/* glib_source(function, way, ran | None, partial) -> PatchedFunction: what is handed to GLib in the place of the program's
 * function, of a source of the kind `way`, "timeout" or "idle". Then ran(function, begin_ns, end_ns) is called. */
PyObject *lc_glib_source(PyObject *module, PyObject *args);

#endif
