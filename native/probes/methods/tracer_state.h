/* What the files of the tracer share (tracer.c): what runs, what the calling thread has, what code objects
 * have of us.
 *
 * GIL held in all functions.
 */
#pragma once

#include <Python.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/methods/calls.h"
#include "module/thread_lane.h"

enum { LC_CALLS_FILES_MAX = 16, LC_TRACED_WORKS_ROOM = 2 * LC_CALLS_WORKS };

/* Work that has a number: a hash of its name. */
typedef struct {
    uint64_t hash;
    uint32_t number; /* 0: the place is free */
} lc_traced_work;

typedef struct {
    bool runs;
    uint64_t
        generation; /* counts starts and stops: state of threads and code objects with another number is out of date */
    uintptr_t stamp;  /* what chosen code objects of this generation have beside their number */
    Py_ssize_t extra; /* index of what we keep in code objects; 0: not asked for */
    bool has_extra;
    PyObject *chooser, *disable, *when_short; /* the last: called once, or NULL */
    char prefix[PATH_MAX];
    char map[PATH_MAX]; /* path of the map of numbers */
    uint64_t words;
    lc_calls files[LC_CALLS_FILES_MAX];
    unsigned file_count;
    uint64_t refused;
    int64_t slow_us;                            /* lc_calls */
    uint64_t slow;                              /* calls that were noted as slow */
    lc_traced_work works[LC_TRACED_WORKS_ROOM]; /* by their hashes */
    uint32_t works_known, work_count;           /* seen, and in the map */
} lc_tracer;

typedef struct {
    uint64_t generation;
    uintptr_t stamp; /* the tracer's where it is traced; 0 */
    lc_calls *calls; /* NULL: this thread is not traced */
    uint64_t noted;  /* lc_running_piece of the work that was noted last */
} lc_traced_thread;

extern lc_tracer lc_the_tracer;
extern _Thread_local lc_traced_thread lc_traced_own __attribute__((tls_model("initial-exec")));

/* What a code object has of us: 2 bits of what it is, 20 of its number, the rest of the generation that it
 * is from. */
enum {
    LC_CODE_UNKNOWN = 0,
    LC_CODE_CHOSEN = 1,
    LC_CODE_LEFT_OUT = 2,
    LC_CODE_WHAT_BITS = 2,
    LC_CODE_STAMP_SHIFT = LC_CODE_WHAT_BITS + LC_CALLS_ID_BITS
};

/* The calling thread's, after it was decided whether it is traced. */
lc_calls *lc_traced_own_calls(void);

static inline uint64_t lc_running_piece(const lc_lane *lane)
{
    return lane != NULL && lc_lane_in_callback(lane) ? LC_LOAD(lane->epoch) : 0;
}

/* Whether it is noted what the calling thread's next call belongs to. */
static inline bool lc_work_is_noted(void)
{
    return __builtin_expect(lc_running_piece(lc_thread_lane_peek()) == lc_traced_own.noted, 1);
}

/* work.c: notes it. `code`: what is called. The thread is traced. */
void lc_note_work(PyObject *code);

/* events.c: adds calls_on_start, calls_on_enter, calls_on_leave. -1 with an exception. */
int lc_call_events_add(PyObject *module);
/* Before 3.12: whether a profiler that is not ours runs on the calling thread; begins ours there; begins
 * and ends it on all threads that are watched, and have no other, false: there are none. Later: false,
 * nothing, true. */
bool lc_another_profiler_runs(void);
void lc_profile_thread(void);
bool lc_profile_threads(bool on);
