/* Making, growing and giving back the flight file of this process. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock/clock.h"
#include "core/flight/flight_format.h"
#include "core/host/kept_file.h"

/* A step of the ticks against CLOCK_MONOTONIC: the machine slept and its counter did not, or the counter
 * was set. */
typedef struct {
    lc_instant before; /* the last pairing before it */
    uint64_t middle;   /* ticks halfway from there to the first pairing after it */
    bool is_back;      /* readings of before it are those above the middle, not those below */
} lc_clock_step;

enum { LC_CLOCK_STEPS = 8 }; /* within what runs now */

typedef struct {
    uint8_t *base; /* NULL: none */
    size_t bytes;
    lc_kept_file file;
    char path[PATH_MAX];
    lc_header *header;
    lc_word *counters;
    lc_gc_entry *collections;
    lc_keeper *keeper;
    lc_instant paired;                   /* the clocks at creation, or after the last step */
    lc_instant refined;                  /* when the rate was last refined, or the clocks were paired */
    lc_instant looked;                   /* the last pairing of all */
    bool is_refined;                     /* else the rate is that of the first 2 ms */
    uint64_t slept_ns;                   /* CLOCK_BOOTTIME less CLOCK_MONOTONIC at that pairing */
    lc_clock_step steps[LC_CLOCK_STEPS]; /* the last ones, oldest first; the watchdog's */
    unsigned step_count;
    bool is_stored_to; /* set before the close: a thread may still store to a lane after it */
} lc_flight;

/* Creates the file `path` (must not exist; mode 0600; sparse) and maps it. Blocks of the file are set
 * aside, of the first lane and slot and of the keeper's page now, of others as they come into use, so that
 * a full disk or tmpfs is an error here and not a SIGBUS later. 0, or an errno. Takes about 2 ms: it
 * measures the rate of the tick counter. */
int lc_flight_create(lc_flight *flight, const char *path);

/* The process says good-bye in the header: that it ends, or calls os._exit; or that it goes on after all. */
void lc_flight_say(lc_flight *flight, lc_process_state state);

/* Unmaps and closes; the file stays. `ended`: with a good-bye. Where lanes are
 * still stored to, memory of no meaning takes the file's place at its addresses and is never given back. */
void lc_flight_close(lc_flight *flight, bool ended);

/* In a forked child: the file is the parent's, and the child may become another user. Memory of no meaning
 * takes its place until the close. */
void lc_flight_leave(lc_flight *flight);

/* Stores the session's facts (JSON). False: too long, nothing stored. */
bool lc_flight_set_facts(lc_flight *flight, const char *json, size_t bytes);

/* Sets the blocks of element `index` of a section aside and returns its address; NULL: no room left on
 * the device, or the program closed the file and it is not at its path any more. Idempotent. */
void *lc_flight_claim(lc_flight *flight, int section, uint64_t index);

void *lc_flight_at(const lc_flight *flight, int section, uint64_t index);

/* The same for a look at tasks; its pages alone are set aside. One after the other, from 0 on. */
lc_slot *lc_flight_look_slot(lc_flight *flight, uint64_t index);

/* Pairs the clocks and measures the rate of the ticks, which takes about 2 ms. */
void lc_flight_begin_clocks(lc_flight *flight);

/* Notes a pairing `now`. If `slept` (CLOCK_BOOTTIME less CLOCK_MONOTONIC, ns) has grown since the last
 * one, or the ticks went otherwise than their rate says, it counts that and reckons from `now` on; what
 * was before it keeps its time. The counter is left when it was set for the second time. Returns whether
 * one of these was the case. One thread (the watchdog). */
bool lc_flight_note_clocks(lc_flight *flight, lc_instant now, uint64_t slept);

/* Pairs the clocks again, notes the pairing and answers it; refines the tick rate, once a second, from all
 * the time since the last step. One thread (the watchdog). */
lc_instant lc_flight_pair_clocks(lc_flight *flight);

/* Nanoseconds (monotonic) of a tick reading of this process. Any thread. */
uint64_t lc_flight_ns(const lc_flight *flight, uint64_t ticks);

/* Nanoseconds of a tick reading, reckoned from a fresh pairing, and for what was before a step from the
 * last one before it: exact for what is near, whatever the clocks did. One thread (the watchdog). */
uint64_t lc_flight_ns_near(const lc_flight *flight, lc_instant now, uint64_t ticks);

static inline lc_lane *lc_flight_lane(const lc_flight *flight, uint64_t index)
{
    return (lc_lane *)lc_flight_at(flight, LC_SECTION_LANES, index);
}

static inline lc_slot *lc_flight_slot(const lc_flight *flight, uint64_t index)
{
    return (lc_slot *)lc_flight_at(flight, LC_SECTION_SLOTS, index);
}

static inline void lc_flight_count(const lc_flight *flight, lc_counter counter, uint64_t by)
{
    atomic_fetch_add_explicit(&flight->counters[counter], by, memory_order_relaxed);
}
