/* A run of trio's: its group of instruments (trio._core._instrumentation.Instruments) in C, which notes turns
 * and callbacks by itself.
 *
 * trio asks its group before each step of a task, and after it, whether any instrument wants to know, in
 * Python. An instrument of ours (trio.abc.Instrument) costs a tenth of an echo server's requests, for all
 * that trio does to call it. A group that answers, and is called, in C costs about what the plain one does.
 * Instruments of others are called as ever. A step ends when trio asks who wants to know of its end.
 *
 *     class Group(native.TrioGroup, Instruments): _call_others = Instruments.call
 *
 * All on the run's thread, under the GIL. Steps are callbacks. Turns are the hooked waits of the run's thread
 * (wait_hook.h) where trio's wait could be hooked, and before_io_wait and after_io_wait where it could not.
 * A guest run has no wait and no turn: its steps run inside a callback of the host's, which is judged up to
 * each. A group may be older than the engine, and outlive it.
 */
#pragma once

#include <Python.h>

/* Adds the type TrioGroup to the module; negative with an exception set where that fails. */
int lc_trio_run_add(PyObject *module);

/* learn_trio(trio.lowlevel.Task) -> bool: whether tasks can be named. */
PyObject *lc_learn_trio(PyObject *module, PyObject *task_type);
