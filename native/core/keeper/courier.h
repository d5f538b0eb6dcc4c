/* The courier: a native thread between the program and its keeper.
 *
 * It does what may block (an executable lies on a disk, stderr has a reader), so that neither the watchdog
 * nor the program has to: it rings the keeper's bell, starts a keeper where none hears it, and writes the
 * keeper's texts to stderr. The watchdog makes it at the first stall; it ends when nothing has been owed for
 * some seconds, and is waited for with a limit only. It never takes the GIL.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/flight/flight.h"
#include "core/host/process_facts.h"
#include "core/watchdog/futex.h"

/* ---- first_word.c -----------------------------------------------------------------------------------
 * The first word of a hang, without the GIL. The keeper may be late, and the program's drain needs the
 * GIL, which the hang may hold. */

enum { LC_FIRST_WORD_BYTES = 2048 };

/* Writes `[loopcanary] blocked for 1.0 s in FILE:LINE, FUNCTION` and a line break, by the slot's last
 * sample with a stack: of the innermost frame whose file lies in none of the library's folders, else of
 * the innermost. Without such a sample it ends after the time. Returns how many bytes it has. `folders`:
 * absolute paths, up to a NULL: first the program's own, to which FILE is relative, then the library's.
 * `text` has LC_FIRST_WORD_BYTES. The watchdog's thread: it wrote the slot. */
size_t lc_first_word(const lc_slot *slot, uint64_t busy_ns, char *const folders[], char *text);

/* ---- console.c --------------------------------------------------------------------------------------
 * Writes a keeper's texts to the program's stderr, on a thread of ours, as reporters/terminal.py does in
 * the program's own way. */

enum { LC_CONSOLE_PIECE = 4096 }; /* at most so much in one write(2): PIPE_BUF of Linux */

typedef struct {
    /* of the file that descriptor 2 was at the start; with inode 0: nothing may be written */
    _Atomic uint64_t device;
    _Atomic uint64_t inode;
    bool is_stuck; /* the reader has stopped: it is not waited for once more */
    size_t rest_bytes;
    char rest
        [LC_CONSOLE_PIECE]; /* rest of a piece that was begun: half an escape sequence must not stay alone */
} lc_console;

/* From now on texts go to descriptor 2, while it is this file. (0, 0): they go nowhere. Any thread. */
void lc_console_allow(lc_console *console, uint64_t device, uint64_t inode);

/* Writes the whole lines of a text; on a terminal after a line break, for what the program may have begun
 * there. Waits a fifth of a second at most for a reader of a pipe, socket or terminal. False: not all of
 * it could be written, now or ever. One thread. */
bool lc_console_write(lc_console *console, const char *text, size_t bytes);

/* ---- keeper_words.c ---------------------------------------------------------------------------------
 * Arguments and environment of a keeper, copied: the courier reads them without the GIL, while the program
 * may change its environment. */

/* Both files lie in memory, as flight files do, so that no thread of the program waits for a disk to ring
 * or start a keeper. */
typedef struct {
    const char *mark; /* its time says when a keeper was last started; a keeper that ends well removes it */
    const char *bell;
    /* of the flight file, or of the link to it in the store, which a keeper makes again; "": it has none */
    const char *name;
} lc_keeper_paths;

typedef struct {
    /* the first word is the executable's path; "": none is to be started, only one that is there is rung */
    char **argv;
    char **envp;
    lc_keeper_paths paths;
    size_t bytes; /* of all: one block */
} lc_keeper_words;

/* A copy, to be given back by free(3). NULL: no memory. */
lc_keeper_words *lc_keeper_words_copy(char *const argv[], char *const envp[], const lc_keeper_paths *paths);
bool lc_keeper_words_equal(const lc_keeper_words *a, const lc_keeper_words *b);

/* Whether the last keeper ended as it should: it was asked to, or had nothing left to do. */
bool lc_keeper_words_ended_well(const lc_keeper_words *words);

/* Starts the keeper (spawn_apart.h), and marks that, so that of many processes of a store one starts it.
 * 0, EINPROGRESS: one was started in the last seconds; or an errno. Waits for the execve, about a
 * millisecond. */
int lc_keeper_words_start(const lc_keeper_words *words);

/* ---- courier.c -------------------------------------------------------------------------------------- */

typedef struct {
    lc_flight *flight;                /* NULL: the engine does not run */
    lc_root_folder root;              /* when the engine started */
    _Atomic(lc_keeper_words *) words; /* NULL: there can be no keeper */
    lc_console console;
    /* of the program and the library, for first words; NULL: no first words are written */
    _Atomic(char **) folders;
    char word[LC_FIRST_WORD_BYTES];
    _Atomic size_t word_bytes; /* 0: no first word waits */
    lc_bell life;              /* of the thread: futex.h */
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
