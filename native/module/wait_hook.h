/* The moment at which a loop's wait is over, before the loop has the GIL again.
 *
 * A turn begins where epoll_wait returns. Seen from Python the wait ends later: when the GIL was got, and when
 * Python's signal handlers have run. What happens in between is the loop's delay, and is seen by a
 * replacement of the epoll_wait that Python's select module calls.
 */
#ifndef LOOPCANARY_WAIT_HOOK_H
#define LOOPCANARY_WAIT_HOOK_H

#include <Python.h>

#include "lane.h"

/* What the calling thread waits with; `lane` NULL: it is not in a bracketed wait. */
typedef struct {
    lc_lane *lane;
    lc_lane_context context; /* a copy: the engine may stop meanwhile */
} lc_wait;

/* Around the call of a selector's select, under the GIL. While a thread is in between, its lane's memory stays. */
lc_wait lc_wait_enter(lc_lane *lane);
void lc_wait_leave(lc_wait outer);

/* hook_epoll_wait(poll): `poll` is select.epoll.poll. False where it cannot be hooked: turns then begin when
 * select returns. Idempotent. */
PyObject *lc_hook_epoll_wait(PyObject *module, PyObject *poll);
PyObject *lc_unhook_epoll_wait(PyObject *module, PyObject *unused);

#endif
