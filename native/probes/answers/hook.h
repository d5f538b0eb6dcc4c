/* Answers of servers, seen in the calls by which the object that holds their sockets (Python's _socket,
 * uvloop) asks the system to receive and send (native/core/answers/answers.h). No server, protocol or stream
 * of Python's is touched: it is one place for all of them. What a call does is what it did; one that carries
 * no request costs a load and a compare more.
 */
#pragma once

#include <Python.h>

/* All under the GIL.
 *
 * hook_answers(where) -> (symbol, ...): as hook_waits (wait_hook.h). unhook_answers(where) undoes one.
 * Each engine starts with no figures.
 * answers_gate(original, timed): takes the place of a server's method (self, application) which handles a
 * request. It is timed(self, application, fd) if the request that came last on this thread is timed, on
 * connection fd; for one of sixteen with -1, once answers_behind_tls() was called; else the original.
 * answer_handled(fd), answer_named(fd, name): lc_answers_handled, lc_answers_name. answers() -> ((thread,
 * events, lag_ns, waited_ns, worst_ns, worst, {bucket: count}), ...): one row a thread that runs a loop
 * and has answered; first, with "" as its thread, what threads without one, or without a row, have
 * answered together. */
PyObject *lc_hook_answers(PyObject *module, PyObject *where);
PyObject *lc_unhook_answers(PyObject *module, PyObject *where);
PyObject *lc_answers_gate(PyObject *module, PyObject *args);
PyObject *lc_answers_behind_tls(PyObject *module, PyObject *unused);
PyObject *lc_answer_handled(PyObject *module, PyObject *connection);
PyObject *lc_answer_named(PyObject *module, PyObject *args);
PyObject *lc_read_answers(PyObject *module, PyObject *unused);
