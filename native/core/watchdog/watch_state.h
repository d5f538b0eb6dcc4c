/* What the watchdog knows: its settings, what it remembers of each lane, its memory. The parts that work on it
 * include this header, and not each other for its sake. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/watchdog/checkpoint.h"
#include "core/liveness/progress.h"
#include "core/watchdog/storm.h"
#include "core/host/host_view.h"
#include "core/keeper/courier.h"
#include "core/lane/lane_reading.h"
#include "core/waits/wait_view.h"

typedef struct {
    /* as configured; lanes have it in ticks, of a rate that is refined. 0: not known */
    uint64_t threshold_ns;
    uint64_t sample_interval_ns;
    uint64_t tick_ns; /* between looks at lanes of which none has worked for long (lc_watchdog_tick_ns) */
    uint64_t park_ns; /* idle for this long: park */
    uint64_t hang_ns; /* all threads are read */
    uint64_t anr_ns;  /* published while it lasts */
    uint64_t stalls_per_minute; /* where a keeper takes them; 0: no limit */
    /* of the service manager that is to be fed; read by lc_watchdog_open; NULL: none */
    const char *notify_socket;
    uint64_t feed_ns;      /* how often */
    uint64_t exit_hung_ns; /* a turn of this length ends the process; 0: none does */
    uint64_t signals;      /* that are noted as they come, a bit each (core/signals) */
    /* how long one of them is held back in a stall until all threads have been read, and a fault anywhere */
    uint64_t signal_patience_ns, fault_patience_ns;
    /* main without progress for so long: the program does not start, or does not end (outside_turn.c) */
    uint64_t boot_ns, exit_ns; /* 0: such programs are not looked for */
    uint64_t look_ns;          /* between looks at tasks; 0: there are none */
} lc_watchdog_settings;

/* The last one: the program answers to interrupts by a handler of its own. */
enum { LC_EXIT_BEGUN = 1u << 0, LC_EXIT_INTERRUPTED = 1u << 1, LC_EXIT_INTERRUPTIBLE = 1u << 2 };

/* Of the main thread in no turn of a loop (outside_turn.c). All zeros: nothing was seen yet. */
typedef struct {
    _Atomic uint32_t exit; /* LC_EXIT_*, as the program says */
    uint64_t kind;         /* LC_ENDED_BOOT, LC_ENDED_EXIT: the program is in it; 0: in neither */
    uint64_t next_ns;      /* when to look again, in one */
    uint64_t began_ns;     /* first look */
    bool has_booted;
    lc_progress progress; /* its `generation` is the CPU time: the same while nothing runs */
} lc_outside;

/* Of the looks at tasks (task_look.c). */
typedef struct {
    uint64_t due_ns;       /* the next one; 0: none was asked for yet */
    uint64_t cost_ns;      /* CPU time of the one that goes on */
    uint64_t serial;       /* of the last one */
    uint64_t turns;        /* of all loops, at the last look or after it */
    uint64_t turns_before; /* at the begin of the one that goes on */
    uint32_t quiet;        /* looks since a loop has turned */
    bool goes_on;
    lc_slot_writer writer;
} lc_task_looks;

/* One for each lane; for a thread without a turn that has caused a fault; for the main thread without one. */
#define LC_WATCH_FAULT LC_LANE_COUNT
#define LC_WATCH_OUTSIDE (LC_LANE_COUNT + 1u)
#define LC_WATCH_COUNT (LC_LANE_COUNT + 2u)

/* What the watchdog remembers of a lane between looks. */
typedef struct {
    uint64_t generation;
    uint64_t turns_seen; /* turn_epoch at the last look */
    uint64_t active_ns;  /* when it was last seen busy or to have turned */
    uint64_t next_sample_ns;
    uint64_t next_checkpoint_ns; /* length of the stall at which its evidence is written to disk again */
    uint64_t word_ns; /* of a hang: when its first word is due, unless it was judged by then; 0: never */
    lc_switch_fields switches; /* last read; they are not read with every sample */
    lc_slot_writer *writer;    /* of the open slot, NULL none */
    uint64_t rest;             /* lc_lane.turn_rest when it was bound */
    lc_thread_view view;
    uint64_t scene_epoch; /* of the callback whose scene is read for good */
    uint64_t blind_tid;   /* counted as a thread whose calls cannot be read */
    lc_wait_memory wait;
    lc_lane_readings readings; /* of the thread, from before a stall */
    lc_progress progress;
} lc_lane_watch;

typedef struct {
    lc_lane_context lanes; /* what program threads need; first, and never cleared */
    lc_flight *flight;
    lc_frame_source *source;
    lc_memory_reader reader; /* of this process, for what system calls point to */
    lc_watchdog_settings settings;
    lc_bell bell;        /* rung to wake the watchdog */
    lc_bell news;        /* rung to wake the drain */
    lc_courier *courier; /* NULL: no keeper is called */
    lc_storm storm;
    lc_checkpoint checkpoint;
    lc_feed feed;
    lc_bell life; /* of the thread: futex.h */
    uint32_t errands_seen;
    bool (*run_errand)(
        /* told, on the watchdog's thread, of an errand (lc_keeper) and at errand_ns; false: told again.
         * May be NULL */
        void);
    _Atomic uint64_t errand_ns; /* 0: at no time */
    uint64_t rights_ns;         /* when the main thread's are looked at again */
    lc_outside outside;
    lc_task_looks *looks;
    bool can_park;
    uint64_t next_serial;
    lc_instant now; /* the clocks at this look */
    uint64_t views_open;
    uint64_t readings_open; /* lanes whose readings hold a descriptor */
    lc_host_view host;
    lc_lane_watch *watches;  /* LC_WATCH_COUNT */
    lc_lane *no_lanes;       /* in no file: what stands for the threads of the last two */
    lc_slot_writer *writers; /* LC_SLOT_COUNT, writers[i] for slot i */
    lc_stack *stack;         /* scratch: large */
    lc_stack *holder_stack;
    lc_moved *moved; /* scratch */
    size_t memory_bytes;
    void *memory;
} lc_watchdog;

static inline lc_lane *lc_watched_lane(const lc_watchdog *w, uint64_t index)
{
    return index < LC_LANE_COUNT ? lc_flight_lane(w->flight, index) : &w->no_lanes[index - LC_LANE_COUNT];
}

static inline uint64_t lc_stall_rate(const lc_watchdog *w) { return LC_LOAD(w->flight->header->tick_ns_q32); }

static inline void lc_watchdog_call_keeper(const lc_watchdog *watchdog)
{
    if (watchdog->courier != NULL && LC_LOAD(watchdog->flight->header->takes) != LC_TAKES_DRAIN) {
        (void)lc_courier_ask(watchdog->courier);
    }
}

/* ---- sampler.c --------------------------------------------------------------------------------------
 * One sample: a thread's frames, the GIL and the kernel's view of the thread, into the slot. */

/* Opens the files that samples of the lane's thread are read from, where there is room for them. */
void lc_sampler_prepare(lc_watchdog *watchdog, const lc_lane *lane, lc_lane_watch *watch);

/* Reads the lane's thread between two looks at its epoch; what was not of one and the same callback (or of
 * one turn, between callbacks) is dropped and counted. */
void lc_sampler_take(lc_watchdog *watchdog, const lc_lane *lane, lc_lane_watch *watch, uint64_t now_ns);

/* The stacks of all threads, once, for a hang. */
void lc_sampler_take_threads(lc_watchdog *watchdog, const lc_lane *lane, lc_lane_watch *watch);

/* ---- stall_slot.c -----------------------------------------------------------------------------------
 * The flight file's slots as the watchdog uses them: one is opened for a lane that is busy for too long,
 * and completed or let go of when its turn is over. The watchdog's thread. */

uint64_t lc_stall_limit_ns(const lc_watchdog *w, uint64_t ticks);

/* A free slot, with what is known of the lane; NULL: all are in use. It is not yet LC_SLOT_OPEN. */
lc_slot *lc_stall_slot_open(lc_watchdog *w, uint64_t index, const lc_lane *lane, lc_lane_watch *watch);
void lc_stall_slot_release(lc_lane_watch *watch);

/* Sees that the slot's heap has room for `bytes` more: where it has not, the stall goes on in another
 * slot, mostly with half of the samples and from now on twice the time between them. Else what a long
 * stall does last would not be seen. */
void lc_stall_slot_make_room(lc_watchdog *w, lc_lane_watch *watch, uint64_t bytes);

void lc_stall_slot_forget_names(lc_slot *slot);
void lc_stall_slot_put_before(lc_slot *slot, const lc_lane_watch *watch, uint64_t begin_ns);

/* Completes the slots of the stalls that the lane says have ended. */
void lc_stall_slot_take_ended(lc_watchdog *w, uint64_t index, lc_lane *lane, lc_lane_watch *watch);

/* ---- stall_watch.c ----------------------------------------------------------------------------------
 * What the watchdog does with one lane at one look: the stall's life from its first sample to its end. */

/* Looks at lane `index`; answers when it wants to look again, LC_NO_DEADLINE where the lane has been idle
 * long enough for the watchdog to park. */
uint64_t lc_stall_watch_look(lc_watchdog *watchdog, uint64_t index, uint64_t now_ns);

/* The stacks of all threads into the lane's stall, if it has one (LC_WATCH_FAULT: into that of a fault in
 * no turn); not where they were read half a second ago. */
void lc_stall_watch_take_threads(lc_watchdog *watchdog, uint64_t index);

/* This thread has caused a fault, and may be about to die: the turn that it is in is a stall from now on,
 * with a sample. If it is in no turn, a slot of its own has what it did, for the last such thread only. */
void lc_stall_watch_take_fault(lc_watchdog *watchdog, uint64_t tid, uint64_t at_ns);

/* A thread that is in no turn, as if it were in one since `begin_ns`: a slot of its own, or what there is since
 * the last look, at an index beyond the lanes. The judge may still find that there is nothing to be said. */
void lc_stall_watch_outside(lc_watchdog *watchdog, uint64_t index, lc_ended_kind kind, uint64_t tid,
                            uint64_t begin_ns, uint64_t now_ns);

void lc_stall_watch_close_view(lc_watchdog *watchdog, uint64_t index);
void lc_stall_watch_close_readings(lc_watchdog *watchdog, uint64_t index);

/* ---- outside_turn.c ---------------------------------------------------------------------------------
 * The main thread outside of turns: a program that does not start (an import that hangs, before its first loop),
 * or does not end (asyncio.run, threading._shutdown and exit functions, once a loop ran on the main thread).
 *
 * Either is a slot with samples of the main thread and the stacks of all others, as of a stall. It is opened
 * only where that is certain:
 *   start   an import is on the stack, the thread has not run for `boot_ns` (so it has read nothing either), and
 *           waits without a timeout for a connection's peer, for a lock on a file, for a dead disk; or for a lock,
 *           as below
 *   end     no thread of the process has run for `exit_ns`, and each waits, without a timeout, for a lock of
 *           this process: none can wake another (core/waits/wait_target.h). After an interrupt: none has run
 *           for more than a moment */

/* After a look at all lanes. Answers when it wants to look again; LC_NO_DEADLINE: not by itself. `are_idle`: the
 * watchdog is about to park. The main thread's stack is looked at then, and from there on a few times in
 * `boot_ns` or `exit_ns` while the program starts or ends. */
uint64_t lc_outside_look(lc_watchdog *watchdog, uint64_t now_ns, bool are_idle);

/* ---- task_look.c ------------------------------------------------------------------------------------
 * What the tasks of asyncio wait for, into the flight file: every few seconds while a loop turns, and twice after its
 * last turn. A circle that two looks have seen calls the keeper. */

/* After a look at all lanes. Answers when it wants to look again; LC_NO_DEADLINE: not before a loop turns. */
uint64_t lc_task_look_next(lc_watchdog *watchdog, uint64_t now_ns);

/* ---- core/liveness/liveness.c ----------------------------------------------------------------
 * What follows from a loop that makes no progress: the service manager is not fed, and the process may end
 * itself. */

/* After a look at all lanes, at `now_ns`. Answers when it wants to look again; LC_NO_DEADLINE: not before
 * work begins or ends. */
uint64_t lc_liveness_look(lc_watchdog *watchdog, uint64_t now_ns);
