/* The start of the program: which modules it imports, and the moments that hooks see
 * (native/core/start/start.h).
 *
 * Imports are seen in importlib's own `_find_and_load`, which C and Python call for each module that is not
 * there yet, and what their loaders read in FileLoader.get_data. The caller hooks both, and takes the hooks
 * out when it is told that the start is over.
 */
#pragma once

#include <Python.h>

/* Adds to the module; negative with an exception set where that fails:
 *   start_notes(path, hook_ns, run_ns, slow_ns, over, unfrozen) -> bool
 *                                                makes the file and begins; a start that takes longer than
 *                                                slow_ns (0: none does) is told to those who take stalls.
 *                                                Whether imports are to be hooked: over() is then called at
 *                                                the end (None: without imports). OSError
 *   start_import(function), start_read(function) the hooks
 *   start_ready(), start_frame()                 note the moment, if it is the first of its kind: an
 *                                                application object is made, a frame is shown
 *   start_over()                                 the main module has ended */
int lc_start_add(PyObject *module);
