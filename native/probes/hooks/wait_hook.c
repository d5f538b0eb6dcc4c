#include "probes/hooks/wait_hook.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "core/start/start.h"
#include "module/agent.h"
#include "probes/hooks/hook_set.h"

static _Thread_local lc_wait own_wait __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t own_looks __attribute__((tls_model("initial-exec")));

static lc_lane *begin_storing(void) { return lc_storing_begin(own_wait.generation) ? own_wait.lane : NULL; }

/* Whether the wait is the loop's. If so, this thread counts as storing until the wait is over. After
 * a signal Python's handlers run and the wait is begun again within one select: each time is a turn of its
 * own. */
static inline bool wait_begins(bool is_look)
{
    if (own_wait.lane == NULL) {
        return false;
    }
    lc_lane *lane = begin_storing();
    if (lane == NULL || lc_lane_in_callback(lane)) {
        lc_storing_end();
        return false;
    }
    lc_turn_end(&own_wait.context, lane);
    own_looks = is_look ? own_looks + 1u : 0u;
    if (!is_look) {
        lc_start_waits();
    }
    return true;
}

static inline void wait_ends(bool is_the_loop_s)
{
    if (is_the_loop_s) {
        const int error = errno;
        if (__atomic_load_n(&lc_the_agent.generation, __ATOMIC_SEQ_CST) == own_wait.generation) {
            lc_turn_begin(&own_wait.context, own_wait.lane);
        }
        errno = error;
    }
}

/* Runs when the hook is left, by pthread_cancel too: this file is compiled with -fexceptions. */
static inline void wait_is_left(const bool *is_the_loop_s)
{
    if (*is_the_loop_s) {
        lc_storing_end();
    }
}

/* Loops that tell by themselves wait for themselves, also inside a callback: it is judged up to here
 * (bracket.h). */
void lc_wait_told_begin(void)
{
    if (own_wait.lane == NULL) {
        return;
    }
    lc_start_waits();
    lc_lane *lane = begin_storing();
    if (lane != NULL) {
        if (lc_lane_in_callback(lane)) {
            (void)lc_callback_end(&own_wait.context, lane);
        }
        lc_turn_end(&own_wait.context, lane);
    }
    lc_storing_end();
}

void lc_wait_told_end(void)
{
    if (own_wait.lane == NULL) {
        return;
    }
    const int error = errno;
    lc_lane *lane = begin_storing();
    if (lane != NULL) {
        lc_turn_begin(&own_wait.context, lane);
    }
    lc_storing_end();
    errno = error;
}

#define WAIT_FUNCTION(...) LC_HOOKS(WAIT_HOOK, int, __VA_ARGS__)

#define WAIT_HOOK(way, name, parameters, arguments, look)                                                    \
    static int hooked_##name##_##way parameters                                                              \
    {                                                                                                        \
        const bool is_the_loop_s __attribute__((cleanup(wait_is_left))) = wait_begins(look);                 \
        const int result = name##_next[way] arguments;                                                       \
        wait_ends(is_the_loop_s);                                                                            \
        return result;                                                                                       \
    }

WAIT_FUNCTION(epoll_wait, (int fd, struct epoll_event *events, int room, int timeout),
              (fd, events, room, timeout), timeout == 0)
WAIT_FUNCTION(epoll_pwait,
              (int fd, struct epoll_event *events, int room, int timeout, const sigset_t *signals),
              (fd, events, room, timeout, signals), timeout == 0)
WAIT_FUNCTION(poll, (struct pollfd * descriptors, nfds_t count, int timeout), (descriptors, count, timeout),
              timeout == 0)
WAIT_FUNCTION(ppoll,
              (struct pollfd * descriptors, nfds_t count, const struct timespec *timeout,
               const sigset_t *signals),
              (descriptors, count, timeout, signals),
              timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0)
WAIT_FUNCTION(select, (int count, fd_set *in, fd_set *out, fd_set *urgent, struct timeval *timeout),
              (count, in, out, urgent, timeout),
              timeout != NULL && timeout->tv_sec == 0 && timeout->tv_usec == 0)
WAIT_FUNCTION(pselect,
              (int count, fd_set *in, fd_set *out, fd_set *urgent, const struct timespec *timeout,
               const sigset_t *signals),
              (count, in, out, urgent, timeout, signals),
              timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0)

WAIT_FUNCTION(nanosleep, (const struct timespec *time, struct timespec *left), (time, left), false)
WAIT_FUNCTION(clock_nanosleep,
              (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
              (clock, flags, time, left), false)

enum { EPOLL_WAIT, WAIT_FUNCTIONS = 6, SLEEP_FUNCTIONS = 2 };

static lc_hooked_function wait_functions[WAIT_FUNCTIONS] = {LC_HOOK_ROW(epoll_wait), LC_HOOK_ROW(epoll_pwait),
                                                            LC_HOOK_ROW(poll),       LC_HOOK_ROW(ppoll),
                                                            LC_HOOK_ROW(select),     LC_HOOK_ROW(pselect)};
static lc_hook_set waits = {.functions = wait_functions}; /* under the GIL, as the next */

static lc_hooked_function sleep_functions[SLEEP_FUNCTIONS] = {LC_HOOK_ROW(nanosleep),
                                                              LC_HOOK_ROW(clock_nanosleep)};
static lc_hook_set sleeps = {.functions = sleep_functions};

PyObject *lc_hook_waits(PyObject *Py_UNUSED(module), PyObject *where)
{
    return lc_hook_set_hook(&waits, where, WAIT_FUNCTIONS);
}

PyObject *lc_unhook_waits(PyObject *Py_UNUSED(module), PyObject *where)
{
    return lc_hook_set_unhook(&waits, where);
}

PyObject *lc_hook_sleeps(PyObject *Py_UNUSED(module), PyObject *where)
{
    return lc_hook_set_hook(&sleeps, where, SLEEP_FUNCTIONS);
}

PyObject *lc_unhook_sleeps(PyObject *Py_UNUSED(module), PyObject *where)
{
    return lc_hook_set_unhook(&sleeps, where);
}

static const void *select_code; /* in the object whose epoll_wait is hooked for asyncio; NULL: none's is */

PyObject *lc_hook_epoll_wait(PyObject *Py_UNUSED(module), PyObject *poll_method)
{
    if (!Py_IS_TYPE(poll_method, &PyMethodDescr_Type)) {
        Py_RETURN_FALSE;
    }
    const void *code = LC_HOOK_CODE(((PyMethodDescrObject *)poll_method)->d_method->ml_meth);
    if (select_code == NULL &&
        lc_hook_set_add(&waits, (lc_got_object){.address = code}, EPOLL_WAIT + 1) != NULL) {
        select_code = code;
    }
    return PyBool_FromLong(select_code != NULL);
}

PyObject *lc_unhook_epoll_wait(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (select_code != NULL) {
        lc_hook_set_remove(&waits, (lc_got_object){.address = select_code});
        select_code = NULL;
    }
    Py_RETURN_NONE;
}

uint32_t lc_wait_looks(void) { return own_looks; }

lc_wait lc_wait_enter(lc_lane *lane)
{
    return lc_wait_exchange((lc_wait){lane, lc_the_agent.generation, lc_the_agent.watchdog.lanes});
}

void lc_wait_leave(lc_wait outer) { own_wait = outer; }

lc_wait lc_wait_exchange(lc_wait run)
{
    const lc_wait outer = own_wait;
    own_wait = run;
    return outer;
}

lc_wait lc_wait_suspend(void)
{
    const lc_wait outer = own_wait;
    own_wait.lane = NULL;
    return outer;
}

void lc_wait_finish(lc_wait outer, bool begins_turn)
{
    lc_lane *lane = begin_storing();
    if (lane != NULL) {
        lc_lane_drop_callback(lane);
        lc_turn_end(&own_wait.context, lane);
        if (begins_turn) {
            lc_turn_begin(&own_wait.context, lane);
        }
    }
    lc_storing_end();
    own_wait = outer;
}
