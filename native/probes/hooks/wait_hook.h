/* Waits of loops, seen in the calls by which the object that holds a loop asks the system to wait.
 *
 * Replaced are the entries of epoll_wait, epoll_pwait, poll, ppoll, select and pselect in the objects that
 * are asked for (native/core/got/got.h). A hooked wait ends the turn and begins the next, without the GIL,
 * where its thread runs a loop and no callback. In all other places it is what it was: a wait inside a
 * callback blocks the callback.
 *
 * A turn begins where the wait returns. Seen from Python it ends later: when the GIL was got, and when
 * Python's signal handlers have run. What happens in between is the loop's delay.
 */
#pragma once

#include <Python.h>

#include <stdbool.h>

#include "core/lane/lane.h"

/* The loop that the calling thread runs; `lane` NULL: none, and hooked waits mean nothing. */
typedef struct {
    lc_lane *lane;
    uint64_t generation;     /* of the agent whose lane it is */
    lc_lane_context context; /* a copy: the engine may stop meanwhile */
} lc_wait;

/* Between the two, hooked waits of the calling thread are its loop's. GIL held. Runs nest: what enter
 * answers goes to leave. The lane may be NULL. */
lc_wait lc_wait_enter(lc_lane *lane);
void lc_wait_leave(lc_wait outer);
/* Both in one, for a run that is known already; needs no GIL. */
lc_wait lc_wait_exchange(lc_wait run);
/* The same without the GIL: in between, hooked waits mean nothing until lc_wait_enter is called; `leave`
 * also ends the run's last turn and, where `begins_turn`, begins one of the loop around it. */
lc_wait lc_wait_suspend(void);
void lc_wait_finish(lc_wait outer, bool begins_turn);

/* How often in a row the calling thread's loop has asked with no patience at all, since it had work that
 * was ready: hooked waits with a timeout of 0. */
uint32_t lc_wait_looks(void);

/* For loops with hooks of their own that are called without the GIL (Tcl's event sources, GLib's poll
 * function): the calling thread's loop is about to wait, and has waited. Nothing where the thread is in no
 * run. Any state of the GIL; no lock, no allocation. */
void lc_wait_told_begin(void);
void lc_wait_told_end(void);

/* Calls of Python; all under the GIL.
 *
 * hook_waits(where) -> (symbol, ...): `where` is an address in an object, or its path or soname. What of
 * it was hooked now. An object that is not loaded, or whose table cannot be written: (). Counts: as many
 * unhook_waits(where) undo it. */
PyObject *lc_hook_waits(PyObject *module, PyObject *where);
PyObject *lc_unhook_waits(PyObject *module, PyObject *where);

/* hook_sleeps(where), unhook_sleeps(where): the same of nanosleep and clock_nanosleep, for a library by which
 * a loop sleeps. In other libraries a sleep is what a callback may do. */
PyObject *lc_hook_sleeps(PyObject *module, PyObject *where);
PyObject *lc_unhook_sleeps(PyObject *module, PyObject *where);

/* hook_epoll_wait(poll): `poll` is select.epoll.poll. False where it cannot be hooked: turns then begin when
 * select returns. Idempotent. */
PyObject *lc_hook_epoll_wait(PyObject *module, PyObject *poll);
PyObject *lc_unhook_epoll_wait(PyObject *module, PyObject *unused);
