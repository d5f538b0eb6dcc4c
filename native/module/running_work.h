/* The work that a thread runs, for loops that may be run again inside it: a dialog's, update(). Such a loop
 * ends the work's bracket (bracket.h); when it is over, the rest of the work is judged by itself, under the
 * same name.
 *
 * GIL held, the thread's own.
 */
#pragma once

#include "module/bracket.h"
#include "cpython/names/work.h"
#include "cpython/names/work_words.h"

/* On the C stack of the thread that runs the work. */
typedef struct lc_running {
    lc_bracket bracket;
    lc_work_note note;
    lc_work_kind kind; /* where the turn is tallied */
    bool tallied;
    struct lc_running *outer;
} lc_running;

extern _Thread_local lc_running *lc_innermost_running __attribute__((tls_model("initial-exec")));

/* `running->note` is filled in. Without the GIL too, where the agent cannot stop meanwhile
 * (threads_storing). */
static inline void lc_running_begin_bare(lc_running *running, lc_lane *lane)
{
    running->bracket = lc_bracket_begin(lane, lc_note_word(&running->note), 0);
    running->tallied = lc_bracket_is_tallied(running->bracket);
    if (__builtin_expect(running->tallied, 0)) { /* before it runs: it may let go of its function */
        running->kind =
            lc_work_kind_of(&lc_the_agent.source, (const void *)(uintptr_t)running->note.callable);
    }
    running->outer = lc_innermost_running;
    lc_innermost_running = running;
}

/* The same, in the scene of the current context. */
static inline void lc_running_begin(lc_running *running, lc_lane *lane)
{
    lc_running_begin_bare(running, lane);
    if (lc_the_agent.scene_variable != NULL) {
        lc_thread_lane_note_scene();
    }
}

static inline void lc_running_end(lc_running *running)
{
    lc_innermost_running = running->outer;
    if (__builtin_expect(running->tallied, 0)) {
        lc_bracket_end_tallied(running->bracket, running->kind, 0);
    } else {
        lc_bracket_end(running->bracket);
    }
}

/* The work that runs and is judged as a callback; NULL: none. */
lc_running *lc_running_open(const lc_lane *lane);
void lc_running_go_on(lc_running *running);

/* What a partial of a partial ... calls, or the function itself. Borrowed. */
PyObject *lc_inside_partials(PyObject *function);
/* From here on partials are known: functools.partial. */
void lc_learn_partial(PyTypeObject *type);
