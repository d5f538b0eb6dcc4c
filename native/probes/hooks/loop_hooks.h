/* Brackets for loops that tell by hooks of their own what they do: LoopHooks(kind) in Python.
 *
 *     run_begin()        the loop begins to run on this thread: its lane, and the first turn. True: in a turn
 *                        of a loop around it
 *     wait_begin()       the loop is about to wait: the turn is over
 *     wait_end()         the wait is over: the next turn
 *     in_turn()          whether the thread is in a turn, of any loop
 *     work_begin(work)   a callback; `work` names it: a str, or what native/cpython/names/work.c can name
 *     work_end()
 *     works_end()        all that were begun in the innermost function of around_works (below)
 *     run_end()          the loop runs no more
 *
 * All under the GIL, on the loop's thread. Further arguments are ignored, so that a hook may be handed to a
 * loop as it is. Whatever is not begun is not ended either: hooks may come and go in the middle of a loop's
 * life. Loops nest: where one runs or waits inside a callback, the callback is judged up to then
 * (lc_bracket_interrupt), and when the run is over, from then on.
 */
#pragma once

#include <Python.h>

#include "core/start/start.h"
#include "module/bracket.h"
#include "probes/hooks/wait_hook.h"

/* Adds the type LoopHooks to the module; negative with an exception set where that fails. */
int lc_loop_hooks_add(PyObject *module);

const char *lc_loop_hooks_kind(PyObject *hooks);

/* work_begin (false with an exception set: the program's own came up meanwhile) and work_end, which calls
 * no Python but for letting go of the work. */
bool lc_work_begin(const char *kind, PyObject *work);
void lc_work_end(void);

/* Between enter and leave, to which goes what enter answered, lc_works_end ends what was begun there; so
 * does leave. An exception that is set stays set. */
uint32_t lc_works_enter(void);
void lc_works_end(void);
void lc_works_leave(uint32_t outer);

typedef struct {
    lc_lane *lane; /* NULL: nothing was begun */
    uint64_t generation;
    bool was_in_turn; /* of the loop around this one */
    lc_wait outer;    /* what hooked waits meant before; they are this loop's until its end */
} lc_loop_run;

/* NULL in `lane` with an exception set: the program's own came up meanwhile, such as a signal handler's. */
static inline lc_loop_run lc_loop_run_begin(const char *kind)
{
    lc_lane *lane = lc_thread_lane_get(kind);
    if (lane == NULL) {
        return (lc_loop_run){NULL, 0, false, lc_wait_enter(NULL)};
    }
    const lc_loop_run run = {lane, lc_the_agent.generation, lc_lane_in_turn(lane), lc_wait_enter(lane)};
    lc_thread_lane_set_kind(lane, kind);
    lc_bracket_interrupt(lane);
    lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    return run;
}

/* Also of a run that began before the engine did, or under an earlier one: the lane is the thread's. */
static inline void lc_loop_run_end(lc_loop_run run)
{
    lc_lane *lane = lc_thread_lane_peek();
    lc_wait_leave(run.outer);
    if (lane == NULL) {
        return;
    }
    lc_bracket_interrupt(lane);
    if (run.was_in_turn && LC_AGENT_RUNS(run.generation)) {
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    }
}

/* A loop that ran before the engine did gets its lane here: a thread may have none, with an exception as
 * above. */
static inline void lc_loop_wait_begin(const char *kind)
{
    lc_lane *lane = lc_thread_lane_get(kind);
    if (lane != NULL) {
        lc_bracket_interrupt(lane);
        lc_start_waits();
    }
}

static inline void lc_loop_wait_end(void)
{
    lc_lane *lane = lc_thread_lane_peek();
    if (lane != NULL) {
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    }
}

/* ---- around.c ---------------------------------------------------------------------------------------
 * Brackets of LoopHooks around a library's functions, without a frame of Python's: methods of LoopHooks in
 * Python.
 *
 *     around_wait(function)                      its call is the loop's wait
 *     around_works(function)                     works that were begun in its call end with it
 *     around_work(function, attribute, name_of)  its call is a callback
 *
 * Each answers a callable that takes the function's place, and binds as functions do. The callback is what
 * the second argument does, an object that has (or has not) the attribute: its name is name_of(type(object),
 * type(object.attribute)), which is asked for once and kept; where name_of raises, it has none. */

PyObject *lc_around_wait(PyObject *hooks, PyObject *function);
PyObject *lc_around_works(PyObject *hooks, PyObject *function);
PyObject *lc_around_work(PyObject *hooks, PyObject *args);
