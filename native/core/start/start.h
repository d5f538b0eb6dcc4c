/* How the process starts, noted in a file that outlives it (start_format.h). One start a process: the file
 * stays mapped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/start/start_format.h"

/* Whether the start is being noted, and none of its ends has come: all that hooks look at. */
extern bool lc_start_awaited;

/* Makes the file (must not exist; mode 0600), with room for imports or without. Times as in the header.
 * `slow` is called, on any thread and with no GIL, where the start is over after `slow_ns`. 0, or an
 * errno; EALREADY: one is noted. GIL. */
int lc_start_create(const char *path, uint64_t hook_ns, uint64_t run_ns, uint64_t slow_ns, void (*slow)(void),
                    bool imports, bool unfrozen);

/* Notes the moment, if it is the first of its kind (`again`: the last). Any thread, no GIL needed. */
void lc_start_note(lc_start_mark mark, bool again);

void lc_start_idle(void);

/* The main thread's loop waits, if it is this one. */
static inline void lc_start_waits(void)
{
    if (__builtin_expect(lc_start_awaited, 0)) {
        lc_start_idle();
    }
}

/* A garbage collection has ended, which took this long. GIL. */
void lc_start_collected(uint64_t took_ns);

/* Whether the calling thread is the one whose start is noted. GIL. */
bool lc_start_is_here(void);

/* Imports, one inside the other. `begin` answers what goes to `end`. GIL, on the main thread. */
uint64_t lc_start_import_begin(const char *name, size_t length);
void lc_start_import_end(uint64_t number, bool failed);
void lc_start_import_read(const char *path, size_t length, uint64_t bytes);
uint32_t lc_start_import_depth(void);

/* In a forked child: nothing more is noted, and memory of no meaning takes the place of the parent's file.
 * Idempotent. */
void lc_start_leave(void);
