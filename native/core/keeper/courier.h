/* The courier: a native thread between the program and its keeper.
 *
 * It does what may block (an executable lies on a disk, stderr has a reader), so that neither the watchdog
 * nor the program has to: it rings the keeper's bell, starts a keeper where none hears it, and writes the
 * keeper's texts to stderr. The watchdog makes it at the first stall; it ends when nothing has been owed for
 * some seconds, and is waited for with a limit only. It never takes the GIL.
 */
#pragma once

#include "core/flight/flight.h"
#include "core/host/process_facts.h"
#include "core/keeper/console.h"
#include "core/keeper/first_word.h"
#include "core/keeper/keeper_words.h"
#include "core/watchdog/thread_life.h"

typedef struct {
    lc_flight *flight;                /* NULL: the engine does not run */
    lc_root_folder root;              /* when the engine started */
    _Atomic(lc_keeper_words *) words; /* NULL: there can be no keeper */
    lc_console console;
    /* of the program and the library, for first words (first_word.h); NULL: no first words are written */
    _Atomic(char **) folders;
    char word[LC_FIRST_WORD_BYTES];
    _Atomic size_t word_bytes; /* 0: no first word waits */
    lc_bell life;              /* of the thread: thread_life.h */
    lc_bell never;             /* to sleep on */
    _Atomic uint32_t asked;    /* how often a ring was asked for */
    _Atomic uint32_t done;     /* how many requests were dealt with, and the result of the last: */
    /* 0: a keeper has heard the bell; EINPROGRESS: one is being started; another errno: there is no keeper */
    _Atomic int outcome;
    uint64_t next_ring_ns;
    uint64_t ring_pause_ns;
    uint64_t started_ns; /* when a keeper was last started; 0 never */
    int start_error;     /* 0 or an errno of that start */
    uint64_t start_pause_ns;
    /* the first unanswered ring since a keeper last did anything for this process; 0: none */
    uint64_t silent_ns;
    /* called without the GIL when there will be no keeper; false: to be called again later. May be NULL */
    bool (*take_over)(void);
    _Atomic int refusal; /* the errno that it was called with; 0: there may be a keeper */
} lc_courier;

/* With the flight whose keeper's page it serves, and with none any more, once its life is over. */
void lc_courier_open(lc_courier *courier, lc_flight *flight);

/* What was asked for: with it a thread waits, also while the engine stops (the pages' memory stays, see
 * module/agent.h). */
typedef struct {
    lc_keeper *page;
    lc_header *header;
    uint32_t number;
} lc_courier_wish;

/* Asks the courier to ring the bell; returns at once. Any thread, while the engine runs; allocates where
 * the courier does not run yet. */
lc_courier_wish lc_courier_ask(lc_courier *courier);

/* Asks the courier to write the first word of this hang. The watchdog's thread. */
void lc_courier_say_first(lc_courier *courier, const lc_slot *slot, uint64_t busy_ns);

/* Waits for the result of a ring until the deadline (ns, monotonic): 0, an errno as above, or ETIMEDOUT. */
int lc_courier_wait(lc_courier *courier, const lc_courier_wish *wish, uint64_t deadline_ns);

/* At the end of the process: waits until the keeper has stored it and all texts are written. False: the
 * deadline has passed, or there is no keeper. */
bool lc_courier_see_off(lc_courier *courier, const lc_courier_wish *wish, uint64_t deadline_ns);

/* lc_life_stops_by waits for that. */
void lc_courier_ask_to_stop(lc_courier *courier);

/* One step of the thread; true: it did something. Tests call it by hand. */
bool lc_courier_look(lc_courier *courier, uint64_t now_ns);
/* Whether a stall goes on, or one that has ended waits to be stored. */
bool lc_courier_is_owed(const lc_courier *courier);
