/* The lane of the calling thread: found in one thread-local load, given out at its first use.
 *
 * All functions hold the GIL.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "module/agent.h"

typedef struct {
    lc_lane *lane;
    uint64_t generation; /* of the agent that gave the lane out */
} lc_thread_lane;

extern _Thread_local lc_thread_lane lc_own_lane __attribute__((tls_model("initial-exec")));

/* Set on threads of our own, which get no lane: a loop there (a hub of gevent's that waits for a patched
 * lock, a reporter's own loop) is not the program's. */
extern _Thread_local bool lc_thread_is_ours __attribute__((tls_model("initial-exec")));

/* Gives the calling thread a lane; NULL where there is none to give (counted) or the agent does not run,
 * and, with an exception set, where the program's own came up meanwhile. None may be set before: hooks of
 * C code, which may be called with one, keep it (cpython/objects/raised.h). `loop_kind` is what reports
 * call the loop; a lane keeps its first one, but for "thread". */
lc_lane *lc_thread_lane_open(const char *loop_kind);

static inline lc_lane *lc_thread_lane_get(const char *loop_kind)
{
    if (__builtin_expect(lc_own_lane.generation == lc_the_agent.generation, 1)) {
        return lc_own_lane.lane;
    }
    return lc_thread_lane_open(loop_kind);
}

/* From now on `opened` is called on each thread that has got a lane, where an exception that is set must stay
 * set, and `closed` with the id of a thread whose lane is closed. */
void lc_thread_lane_listen(void (*opened)(void), void (*closed)(uint64_t tid));

/* The calling thread's lane if it has one; never makes one. */
static inline lc_lane *lc_thread_lane_peek(void)
{
    return lc_own_lane.generation == lc_the_agent.generation ? lc_own_lane.lane : NULL;
}

/* A callback outside of a turn is one by itself. Out of line, for the sake of those inside. */
void lc_thread_lane_begin_turn(lc_lane *lane);
void lc_thread_lane_end_turn(lc_lane *lane);

/* The scene of the current context: a str, a new reference. NULL, perhaps with an exception: none.
 * What the variable holds: model/scene.py. */
PyObject *lc_thread_lane_scene(void);

/* Notes the scene of the current context in the calling thread's lane. An exception that is set stays set. */
void lc_thread_lane_note_scene(void);

/* The scene of the calling thread where the program says none, such as a window's title: a str, NULL for
 * none. Until the agent stops. */
void lc_thread_lane_set_title(PyObject *title);
uint64_t lc_thread_lane_title(void);

/* Calls a function of ours; answers as lc_raised_is_ours (cpython/objects/raised.h). */
bool lc_call_ours(PyObject *function, PyObject *argument);

/* The same with a number. */
bool lc_call_ours_with(PyObject *function, uint32_t number);

/* Whether Python may be called on this thread: it has a thread state, and the interpreter is not about to
 * end. GIL or none. */
bool lc_may_call_python(void);

/* A loop of that kind begins to run on the thread: within another one, the lane stays that one's. */
void lc_thread_lane_set_kind(lc_lane *lane, const char *loop_kind);

/* ---- memory of a thread -----------------------------------------------------------------------------
 * Memory of one thread on the heap, freed with its thread: thread-local memory of a library that reaches
 * it directly, as this one does (thread_lane.h), is scarce. */

/* Zeroed; the key's destructor frees it. NULL: there is none. */
static inline void *lc_thread_memory(pthread_key_t key, size_t bytes)
{
    void *fresh = calloc(1, bytes);
    if (fresh != NULL && pthread_setspecific(key, fresh) != 0) {
        free(fresh);
        return NULL;
    }
    return fresh;
}
