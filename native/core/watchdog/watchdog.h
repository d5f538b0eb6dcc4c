/* The watchdog: a native thread that looks at the lanes, samples what is busy for too long, and completes
 * what has ended. It never takes the GIL, never allocates after its start, and blocks the program's signals.
 *
 * It ticks only while a lane is active. When all lanes have been idle for a second it parks: it sleeps
 * without a deadline, and the next begin wakes it (lane.h).
 */
#ifndef LOOPCANARY_WATCHDOG_H
#define LOOPCANARY_WATCHDOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/watchdog/checkpoint.h"
#include "core/liveness/feed.h"
#include "core/liveness/progress.h"
#include "core/flight/flight.h"
#include "core/watchdog/frame_source.h"
#include "core/watchdog/futex.h"
#include "core/watchdog/storm.h"
#include "core/watchdog/thread_life.h"
#include "core/host/host_view.h"
#include "core/keeper/courier.h"
#include "core/lane/lane.h"
#include "core/lane/lane_reading.h"
#include "core/flight/slot_move.h"
#include "core/flight/slot_writer.h"
#include "core/host/thread_view.h"
#include "core/waits/wait_view.h"

typedef struct {
    uint64_t threshold_ns; /* as configured; lanes have it in ticks, of a rate that is refined. 0: not known */
    uint64_t sample_interval_ns;
    uint64_t tick_ns;     /* between looks at lanes of which none has worked for long (lc_watchdog_tick_ns) */
    uint64_t park_ns;     /* idle for this long: park */
    uint64_t hang_ns;     /* all threads are read */
    uint64_t anr_ns;      /* published while it lasts */
    uint64_t stalls_per_minute; /* where a keeper takes them; 0: no limit */
    const char *notify_socket;  /* of the service manager that is to be fed; read by lc_watchdog_open; NULL: none */
    uint64_t feed_ns;           /* how often */
    uint64_t exit_hung_ns;      /* a turn of this length ends the process; 0: none does */
    uint64_t signals;           /* that are noted as they come, a bit each (core/signals) */
} lc_watchdog_settings;

/* One for each lane, and for a thread without a turn that has caused a fault. */
#define LC_WATCH_COUNT (LC_LANE_COUNT + 1u)

/* What the watchdog remembers of a lane between looks. */
typedef struct {
    uint64_t generation;
    uint64_t turns_seen;      /* turn_epoch at the last look */
    uint64_t active_ns;       /* when it was last seen busy or to have turned */
    uint64_t next_sample_ns;
    uint64_t next_checkpoint_ns; /* length of the stall at which its evidence is written to disk again */
    lc_switch_fields switches;   /* last read; they are not read with every sample */
    lc_slot_writer *writer;   /* of the open slot, NULL none */
    lc_thread_view view;
    uint64_t scene_epoch; /* of the callback whose scene is read for good */
    uint64_t blind_tid; /* counted as a thread whose calls cannot be read */
    lc_wait_memory wait;
    lc_lane_readings readings;   /* of the thread, from before a stall */
    lc_progress progress;
} lc_lane_watch;

typedef struct {
    lc_lane_context lanes; /* what program threads need; first, and never cleared */
    lc_flight *flight;
    lc_frame_source *source;
    lc_memory_reader reader; /* of this process, for what system calls point to */
    lc_watchdog_settings settings;
    lc_bell bell;          /* rung to wake the watchdog */
    lc_bell news;          /* rung to wake the drain */
    lc_courier *courier;   /* NULL: no keeper is called */
    lc_storm storm;
    lc_checkpoint checkpoint;
    lc_feed feed;
    lc_bell life; /* of the thread: thread_life.h */
    uint32_t errands_seen;
    bool (*run_errand)(void);/* told, on the watchdog's thread, of an errand (lc_keeper) and at errand_ns; false: told again. May be NULL */
    _Atomic uint64_t errand_ns; /* 0: at no time */
    bool can_park;
    uint64_t next_serial;
    lc_instant now; /* the clocks at this look */
    uint64_t views_open;
    uint64_t readings_open; /* lanes whose readings hold a descriptor */
    lc_host_view host;
    lc_lane_watch *watches;   /* LC_WATCH_COUNT */
    lc_lane *fault_lane; /* in no file: what stands for such a thread */
    lc_slot_writer *writers;  /* LC_SLOT_COUNT, writers[i] for slot i */
    lc_stack *stack;          /* scratch: large */
    lc_stack *holder_stack;
    lc_moved *moved; /* scratch */
    size_t memory_bytes;
    void *memory;
} lc_watchdog;

/* The tick: the longest that work may have run when it is first seen. A program that is never idle wakes the watchdog once in a
 * tick; so the default sample delay, a fifth of the threshold, is not also the tick. A shorter delay was asked for, and is. */
static inline uint64_t lc_watchdog_tick_ns(uint64_t threshold_ns, uint64_t sample_delay_ns)
{
    const uint64_t latest_ns = threshold_ns / 20u * 7u;
    return sample_delay_ns >= threshold_ns / 5u && sample_delay_ns < latest_ns ? latest_ns : sample_delay_ns;
}

/* Sets memory aside (one mapping, touched as used). `checkpoint_path`: NULL for no copies on disk.
 * 0 or an errno. */
int lc_watchdog_open(lc_watchdog *watchdog, lc_flight *flight, lc_frame_source *source,
                     const lc_watchdog_settings *settings, const char *checkpoint_path);
/* Where a keeper takes or tells stalls: has it called. */
static inline void lc_watchdog_call_keeper(const lc_watchdog *watchdog)
{
    if (watchdog->courier != NULL && LC_LOAD(watchdog->flight->header->takes) != LC_TAKES_DRAIN) {
        (void)lc_courier_ask(watchdog->courier);
    }
}

/* Starts the thread, if it does not run; one that was asked to stop and has not yet stopped goes on. 0 or an errno. */
int lc_watchdog_start(lc_watchdog *watchdog);
/* It stops after a last look that completes what has ended; lc_life_stops_by waits for that. A disk that does not answer
 * a checkpoint holds it up for as long. */
void lc_watchdog_ask_to_stop(lc_watchdog *watchdog);
/* Once its life is over. */
void lc_watchdog_close(lc_watchdog *watchdog);

/* One look at all lanes at time `now`; answers when it wants to look again (LC_NO_DEADLINE: all lanes have
 * been idle long enough to park). The thread's loop is this and a sleep; tests drive it by hand. */
uint64_t lc_watchdog_look(lc_watchdog *watchdog, uint64_t now_ns);

#endif
