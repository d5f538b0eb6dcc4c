/* A thread that runs Python and that the program cannot see: neither threading nor _thread knows it. With
 * one of theirs a program would find a thread that it has not made in threading.enumerate, active_count and
 * _thread._count; test suites, CPython's own first, take that for a leak. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* start_thread(function) -> handle: calls function() once, on a new thread with the program's signals
 * blocked. It ends with the interpreter at the latest, as daemon threads do. OSError where the system
 * gives no thread. */
PyObject *lc_start_thread(PyObject *module, PyObject *function);

/* Gives what is to be called, a new reference; NULL: nothing. GIL held. */
typedef PyObject *lc_quiet_take(void);

/* Has a new thread call what take() gives, unless the engine that runs now has stopped by then. False: the
 * system gives no thread. Any thread, without the GIL. */
bool lc_quiet_thread_call(lc_quiet_take *take);

/* The engine has stopped, and the interpreter may be about to end: waits until all threads that were
 * started have had the GIL, for a second at most. GIL held, and let go of. */
void lc_quiet_threads_arrive(void);
/* How many other threads are about to make such a call, or in its middle. */
int lc_quiet_calls(void);
/* Waits until there is none, until the deadline (ns, monotonic). GIL as above. */
void lc_quiet_calls_end(uint64_t deadline_ns);
/* In a forked child: they are not here. */
void lc_quiet_threads_leave(void);

/* join_thread(handle, timeout_s) -> bool: waits without the GIL; whether the thread has ended. */
PyObject *lc_join_thread(PyObject *module, PyObject *args);
