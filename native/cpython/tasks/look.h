/* A look at all tasks of this process's asyncio: where they wait, since which look, and whether some wait for each
 * other. The watchdog's thread, without the GIL; nothing of the program's is called or woken. */
#pragma once

#include "core/flight/slot_writer.h"
#include "core/memory/page_cache.h"
#include "cpython/tasks/tasks.h"

#define LC_LOOK_TASKS_MAX 16384u
#define LC_LOOK_HELD_MAX 16384u
#define LC_LOOK_THREADS_MAX 256u
#define LC_LOOK_KNOWN 64u
#define LC_LOOK_TOLD 16u

/* What is kept of a task from one look to the next. */
typedef struct {
    uint64_t task;
    uint64_t place; /* a hash of the places at which it waits */
    uint64_t self;  /* of these, and of all objects around: another one where it has gone on */
    uint64_t since_ns;
    uint32_t has_timeout, is_told;
} lc_task_note;

typedef struct lc_task_look {
    lc_cpython_source source; /* a copy, which reads pages */
    lc_page_cache cache;
    lc_tasks tasks;
    lc_task task; /* scratch */
    lc_thread_ref threads[LC_LOOK_THREADS_MAX];
    struct {
        uint64_t at;
        uint32_t what;
    } codes[LC_LOOK_KNOWN], exits[LC_LOOK_KNOWN]; /* known since the look began, by address */
    uint64_t began_ns;                            /* of the look that goes on; 0: none does */
    bool is_new;                                  /* a circle of this look was not there in the one before */
    uint32_t count, done, others;
    uint32_t before_count, held_count;
    uint32_t told_count;
    uint64_t told[LC_LOOK_TOLD];            /* circles, by hashes */
    lc_pair found[LC_LOOK_TASKS_MAX];       /* a task and the lock or task that it waits for, 0 none */
    lc_pair held[LC_LOOK_HELD_MAX];         /* a lock and the number of a task that holds it */
    lc_pair order[LC_LOOK_TASKS_MAX];       /* a place and the number of a task */
    uint32_t next[LC_LOOK_TASKS_MAX];       /* number of the task that one waits for, from 1 */
    uint32_t walk[LC_LOOK_TASKS_MAX];       /* in which walk it was seen; then its circle */
    lc_task_note before[LC_LOOK_TASKS_MAX]; /* of the last look, sorted by task */
    lc_task_note notes[LC_LOOK_TASKS_MAX];
} lc_task_look;

/* lc_frame_source.look. */
lc_look_result lc_look_at_tasks(lc_cpython_source *source, lc_slot_writer *into, uint64_t now_ns);
