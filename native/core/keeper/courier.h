/* The courier: a native thread between the program and its keeper.
 *
 * It does what may block (the bell and the log of a keeper lie on a disk, stderr has a reader), so that neither the watchdog nor the program has
 * to: it rings the keeper's bell, starts a keeper where none hears it, and writes the keeper's texts to stderr. The watchdog makes it at the
 * first stall; it ends when nothing has been owed for some seconds, and is waited for with a limit only. It
 * never takes the GIL.
 */
#ifndef LOOPCANARY_COURIER_H
#define LOOPCANARY_COURIER_H

#include "core/flight/flight.h"
#include "core/keeper/console.h"
#include "core/keeper/keeper_words.h"
#include "core/watchdog/thread_life.h"

typedef struct {
    lc_flight *flight; /* NULL: the engine does not run */
    _Atomic(lc_keeper_words *) words; /* NULL: there can be no keeper */
    lc_console console;
    lc_bell life;          /* of the thread: thread_life.h */
    lc_bell never;         /* to sleep on */
    _Atomic uint32_t asked; /* how often a ring was asked for */
    _Atomic uint32_t done;  /* those that were dealt with, and what came of the last: */
    _Atomic int outcome;    /* 0: a keeper has heard it; EINPROGRESS: one is being started; another errno: there is none */
    uint64_t next_ring_ns;
    uint64_t ring_pause_ns;
    uint64_t started_ns; /* when a keeper was last started; 0 never */
    int start_error;     /* what came of that */
    uint64_t start_pause_ns;
    uint64_t silent_ns;  /* the first ring that none has heard since a keeper did anything for this process; 0: there is none */
    bool (*take_over)(void); /* told, without the GIL, that the program is to take its stalls; false: told again later. May be NULL */
    _Atomic int refusal;     /* it was told this errno, as there will be no keeper; 0: there may be one */
    _Atomic bool is_loaded;  /* it was told that something has ended which is the program's (LC_TAKES_PROGRAM, LC_TAKES_LATER) */
    _Atomic bool has_notes;  /* beside stalls something has ended that is to be taken */
} lc_courier;

/* With the flight whose keeper's page it serves, and with none any more, once its life is over. */
void lc_courier_open(lc_courier *courier, lc_flight *flight);

/* What was asked for: with it a thread waits, also while the engine stops (the pages' memory stays, see module/agent.h). */
typedef struct {
    lc_keeper *page;
    lc_header *header;
    uint32_t number;
} lc_courier_wish;

/* Has the bell rung soon, in any case not by this thread. Any thread, while the engine runs; allocates where the courier does not run. */
lc_courier_wish lc_courier_ask(lc_courier *courier);

/* Waits until the deadline (ns, monotonic) for what comes of it: 0, or an errno as above; ETIMEDOUT. */
int lc_courier_wait(lc_courier *courier, const lc_courier_wish *wish, uint64_t deadline_ns);

/* At the end of the process: waits until the keeper has stored it and all texts are written. False: the deadline has
 * passed, or there is no keeper. */
bool lc_courier_see_off(lc_courier *courier, const lc_courier_wish *wish, uint64_t deadline_ns);

/* lc_life_stops_by waits for that. */
void lc_courier_ask_to_stop(lc_courier *courier);

/* What the thread does at one moment; answers whether it did anything. Tests drive it by hand. */
bool lc_courier_look(lc_courier *courier, uint64_t now_ns);
/* Whether a stall goes on, or something has ended and nobody is about to take it. */
bool lc_courier_is_owed(const lc_courier *courier);

#endif
