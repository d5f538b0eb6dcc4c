/* Calls of chosen functions, noted as they happen (core/methods/calls.h): on the main thread and on each that
 * has a lane.
 *
 * On 3.12 and later the events are sys.monitoring's, which calls the C functions below; before, those of
 * PyEval_SetProfile. A code object is shown to Python once (the chooser), which answers its number, or 0: not
 * chosen. The number lies in the code object. All functions hold the GIL.
 */
#pragma once

#include <Python.h>

/* Adds calls_start(prefix, map, words, slow_us, chooser, disable, when_short) -> words | None: files are
 * `<prefix><number>`, `map` the path of the map, to which names of work are added, a call of `slow_us` is
 * slow (events.c; 2^64 - 1: none is); the room that the calling thread got, None where it is not traced
 * (yet); when_short() is called once, where a later one gets less, or none. OSError: there is no room for
 * it. RuntimeError (3.11): a profiler runs. calls_stop(): files stay, also the parent's in a forked child;
 * idempotent. calls_refused() -> int: threads for whose calls there was no file. calls_slow() -> int:
 * calls that were noted as slow since the last start. calls_on_start, calls_on_enter, calls_on_leave:
 * callbacks of sys.monitoring. */
int lc_calls_add(PyObject *module);
