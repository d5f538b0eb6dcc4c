/* Whether the threads of this process wait for nothing but each other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/host/proc_text.h"

typedef struct {
    uint64_t cpu_ns; /* of all threads but our own */
    /* each of them sleeps in a futex of this process, without a timeout: until another one wakes it */
    bool is_closed;
    bool is_known; /* false: there are too many, or the kernel does not tell */
} lc_process_waits;

/* Looks at all threads but our own; not at more of them than it takes to see that the process is not closed, unless
 * `whole`. `main_polls`: the main one may be in a poll of a minute or more instead, and others may read the terminal or standard input
 * (an asyncio loop that ends waits for its executor). Some 20 us a thread; no allocation, no lock. */
void lc_process_waits_look(bool main_polls, bool whole, lc_process_waits *out);

/* Whether the call is a wait for a futex of this process that has no timeout. */
bool lc_waits_for_own_futex(const lc_syscall_fields *call);
