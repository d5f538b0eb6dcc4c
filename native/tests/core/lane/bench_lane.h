/* A flight file, a lane and a watchdog that is driven by hand: what the stories of the tests play on. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"
#include "core/lane/long_work.h"
#include "tests/core/watchdog/scripted_source.h"
#include "core/watchdog/watchdog.h"

/* The stories speak of milliseconds; here each is 20 long, so that a test that is not scheduled for a
 * while does not become another story. Nothing waits: ages are set. */
#define MS UINT64_C(20000000)
enum { THRESHOLD_MS = 100, DELAY_MS = 20 };

typedef struct {
    char path[64];
    lc_flight flight;
    scripted_source source;
    lc_watchdog watchdog;
    lc_lane *lane;
} stage;

static inline unsigned open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static inline lc_lane *stage_lane(stage *s, uint64_t index)
{
    lc_lane *lane = lc_flight_claim(&s->flight, LC_SECTION_LANES, index);
    CHECK(lane != NULL);
    const uint64_t rate = LC_LOAD(s->flight.header->tick_ns_q32);
    LC_STORE(lane->tid, (uint64_t)syscall(SYS_gettid));
    LC_STORE(lane->threshold, lc_ns_to_ticks(THRESHOLD_MS * (uint64_t)MS, rate));
    LC_STORE(lane->sample_delay, lc_ns_to_ticks(DELAY_MS * (uint64_t)MS, rate));
    lc_long_work_open(lane, rate);
    LC_STORE(lane->generation, 1);
    LC_RELEASE(lane->state, LC_LANE_ACTIVE);
    return lane;
}

static inline void stage_open(stage *s)
{
    const lc_watchdog_settings settings = {
        .threshold_ns = THRESHOLD_MS * (uint64_t)MS,
        .sample_interval_ns = 10 * MS,
        .tick_ns = DELAY_MS * MS,
        .park_ns = 1000u * MS,
        .hang_ns = 1000u * MS,
        .anr_ns = 5000ull * MS,
        .signal_patience_ns = 50u * MS,
        .fault_patience_ns = 500u * MS,
    };
    snprintf(s->path, sizeof s->path, "/tmp/loopcanary-test-%d.flight", getpid());
    unlink(s->path);
    s->source = scripted();
    CHECK(lc_flight_create(&s->flight, s->path) == 0);
    CHECK(lc_watchdog_open(&s->watchdog, &s->flight, &s->source.source, &settings, NULL) == 0);
    s->lane = stage_lane(s, 0);
}

static inline void stage_close(stage *s)
{
    lc_watchdog_close(&s->watchdog);
    lc_flight_close(&s->flight, true);
    unlink(s->path);
}

static inline lc_lane_context *stage_context(stage *s) { return &s->watchdog.lanes; }

/* Moves the begin of what runs into the past: the thread has been busy since. */
static inline void age_turn(stage *s, uint64_t ms)
{
    const uint64_t ticks = lc_ns_to_ticks(ms * MS, LC_LOAD(s->flight.header->tick_ns_q32));
    LC_RELEASE(s->lane->turn_begin, LC_LOAD(s->lane->turn_begin) - ticks);
    if (LC_LOAD(s->lane->turn_rest)) {
        LC_RELEASE(s->lane->turn_rest, LC_LOAD(s->lane->turn_rest) - ticks);
    }
}

static inline void age_callback(stage *s, uint64_t ms)
{
    const uint64_t ticks = lc_ns_to_ticks(ms * MS, LC_LOAD(s->flight.header->tick_ns_q32));
    LC_RELEASE(s->lane->begin, LC_LOAD(s->lane->begin) - ticks);
    age_turn(s, ms);
}

static inline uint64_t look(stage *s) { return lc_watchdog_look(&s->watchdog, lc_now_ns()); }

static inline lc_slot *slot(stage *s, uint64_t index)
{
    return index < LC_LOAD(s->flight.header->sections[LC_SECTION_SLOTS].used)
               ? lc_flight_slot(&s->flight, index)
               : NULL;
}

static inline uint64_t counted(const stage *s, lc_counter counter)
{
    return LC_LOAD(s->flight.counters[counter]);
}
