/* A thread that runs Python and that the program cannot see: neither threading nor _thread knows it. With
 * one of theirs a program would find a thread that it has not made in threading.enumerate, active_count and
 * _thread._count; test suites, CPython's own first, take that for a leak. */
#ifndef LOOPCANARY_QUIET_THREAD_H
#define LOOPCANARY_QUIET_THREAD_H

#include <Python.h>

/* start_thread(function) -> handle: calls function() once, on a new thread with the program's signals blocked. It ends with
 * the interpreter at the latest, as daemon threads do. OSError where the system gives no thread. */
PyObject *lc_start_thread(PyObject *module, PyObject *function);

/* Runs run(argument) on a detached thread with the program's signals blocked, and a stack on which Python can run. 0 or an errno. Any thread,
 * without the GIL. */
int lc_quiet_thread_start(void *(*run)(void *), void *argument);

/* join_thread(handle, timeout_s) -> bool: waits without the GIL; whether the thread has ended. */
PyObject *lc_join_thread(PyObject *module, PyObject *args);

#endif
