#include "wait_hook.h"

#include <errno.h>
#include <sys/epoll.h>

#include "agent.h"
#include "got.h"

typedef int (*epoll_wait_function)(int, struct epoll_event *, int, int);

static _Thread_local lc_wait own_wait __attribute__((tls_model("initial-exec")));
static lc_got_patch patch;
static epoll_wait_function next_epoll_wait = epoll_wait;

/* Without the GIL, on the waiting thread. After a signal Python's handlers run and the wait is begun again
 * within one select: each time is a turn of its own. */
static int hooked_epoll_wait(int fd, struct epoll_event *events, int room, int timeout)
{
    lc_lane *lane = own_wait.lane;
    if (lane == NULL) {
        return next_epoll_wait(fd, events, room, timeout);
    }
    lc_turn_end(&own_wait.context, lane);
    const int count = next_epoll_wait(fd, events, room, timeout);
    const int error = errno;
    lc_turn_begin(&own_wait.context, lane);
    errno = error;
    return count;
}

lc_wait lc_wait_enter(lc_lane *lane)
{
    const lc_wait outer = own_wait;
    own_wait = (lc_wait){lane, lc_the_agent.watchdog.lanes};
    lc_the_agent.threads_waiting++;
    return outer;
}

void lc_wait_leave(lc_wait outer)
{
    own_wait = outer;
    lc_the_agent.threads_waiting--;
}

PyObject *lc_hook_epoll_wait(PyObject *module, PyObject *poll)
{
    (void)module;
    if (!Py_IS_TYPE(poll, &PyMethodDescr_Type)) {
        Py_RETURN_FALSE;
    }
    if (patch.entry == NULL) {
        const void *code = (const void *)(uintptr_t)((PyMethodDescrObject *)poll)->d_method->ml_meth;
        if (!lc_got_replace(&patch, code, "epoll_wait", (void *)(uintptr_t)hooked_epoll_wait,
                            (void *)(uintptr_t)epoll_wait)) {
            Py_RETURN_FALSE;
        }
        next_epoll_wait = (epoll_wait_function)(uintptr_t)patch.original;
    }
    Py_RETURN_TRUE;
}

PyObject *lc_unhook_epoll_wait(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    lc_got_restore(&patch);
    Py_RETURN_NONE;
}
