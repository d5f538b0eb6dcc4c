/* What is known of a thread that runs Tcl. Its own thread, GIL held. */
#ifndef LOOPCANARY_TK_THREAD_H
#define LOOPCANARY_TK_THREAD_H

#include "module/running_work.h"

typedef struct {
    uint64_t generation;      /* of the agent that knows this thread */
    uint64_t run_generation;  /* of the agent under which the innermost of `runs` began, 0: there is none */
    uint32_t runs;            /* of patched functions that run Tcl's loop, one inside the other */
    uint32_t updates;         /* update() outside of any loop, up to LC_TK_BY_HAND */
    bool runs_tcl;            /* it has run a command or mainloop(): Tcl's loop is this thread's */
    bool by_hand;             /* the program turns the loop by update(): a turn lasts from one to the next */
    bool adopted;             /* its waits are seen though its mainloop() was not patched when it began */
} lc_tk_thread;

/* This many calls of update() outside mainloop() are a loop; fewer only bring a window up to date. */
#define LC_TK_BY_HAND 3u

extern _Thread_local lc_tk_thread lc_own_tk __attribute__((tls_model("initial-exec")));

/* The calling thread's lane, as of a thread that runs Tcl; NULL as lc_thread_lane_get. `seen`, if not NULL, is called
 * when a thread is first seen under this agent: it may adopt the loop (tk_adopt). */
lc_lane *lc_tk_lane_open(PyObject *seen);

static inline lc_lane *lc_tk_lane_get(PyObject *seen)
{
    if (__builtin_expect(lc_own_tk.generation == lc_the_agent.generation &&
                             lc_own_lane.generation == lc_the_agent.generation, 1)) {
        return lc_own_lane.lane;
    }
    return lc_tk_lane_open(seen);
}

#endif
