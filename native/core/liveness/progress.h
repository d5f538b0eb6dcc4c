/* For how long a loop has been in its present turn, as the watchdog itself saw it.
 *
 * What is summed up is the time between the watchdog's looks, and of each no more than LC_PROGRESS_STEP_NS:
 * while the process is stopped (SIGSTOP, a debugger) or the machine sleeps, the watchdog does not look
 * either, and that time is nobody's fault.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LC_PROGRESS_STEP_NS UINT64_C(2000000000)
#define LC_PROGRESS_LOOK_NS UINT64_C(500000000) /* how often to look at a loop in a turn, at least */

/* All zeros: nothing was seen yet. */
typedef struct {
    uint64_t generation; /* of the lane */
    uint64_t turn;       /* its turn_epoch at the last look */
    uint64_t looked_ns;
    uint64_t held_ns;          /* in this turn */
    uint64_t grant_epoch;      /* the callback to which `expect` granted... */
    uint64_t grant_ns;         /* ...this much; */
    uint64_t grants_before_ns; /* and to callbacks of the turn before it */
} lc_progress;

/* What a lane says now. */
typedef struct {
    uint64_t generation;
    uint64_t turn; /* odd: in a turn */
    uint64_t grant_epoch;
    uint64_t grant_ns; /* 0: none */
} lc_progress_facts;

/* Notes a look at `now_ns`. Answers how long the turn has lasted without what was granted to it; 0: it
 * waits. Pure but for `progress`. */
uint64_t lc_progress_note(lc_progress *progress, const lc_progress_facts *facts, uint64_t now_ns);
