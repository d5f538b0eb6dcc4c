/* The seam between the watchdog, which knows no interpreter, and what reads an interpreter's frames.
 *
 * native/cpython implements it for CPython; tests implement it with scripted stacks. All functions but
 * `name_ended` run on the watchdog's thread, without the GIL, and must not allocate, lock, log or block;
 * memory they need is set aside when the source is made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/flight/flight_format.h"

/* Text as the source holds it: UTF-8, valid until the source's next call. */
typedef struct {
    const char *bytes;
    uint32_t length;
} lc_text;

/* What a frame's code object is. `serial` identifies the code object for as long as the source lives
 * (a freed and reused address gets a new serial), so that a writer can remember what it wrote. */
typedef struct {
    uint64_t serial;
    lc_text filename;
    lc_text qualname;
    uint32_t first_line;
    uint32_t code_flags;
} lc_code_facts;

typedef struct {
    const lc_code_facts *code;
    uint32_t line;
    uint32_t end_line;
    uint16_t column;
    uint16_t end_column;
} lc_frame;

typedef struct {
    uint32_t count;
    bool truncated; /* outer frames were left out */
    bool inner_cut; /* inner frames moved at every try and were left out */
    /* other frames were the innermost ones in other readings: functions were called meanwhile */
    bool came_and_went;
    uint64_t hash; /* of codes and positions; equal stacks have equal hashes */
    /* CPU time of the thread, if it did not run while it was read; 0 if it did, or unknown */
    uint64_t still_cpu_ns;
    lc_frame frames[LC_STACK_FRAMES_MAX]; /* innermost first */
} lc_stack;

typedef enum {
    LC_WALK_OK = 0,
    LC_WALK_EMPTY = 1,     /* the thread runs no Python frame */
    LC_WALK_MOVED = 2,     /* the frames changed while they were read, at every try */
    LC_WALK_UNREADABLE = 3 /* memory could not be read, or did not hold what it must */
} lc_walk_result;

typedef struct {
    lc_gil_state state; /* as seen from the thread asked about */
    uint64_t holder_thread_state;
    uint32_t holder_tid;
    uint64_t wait_address_low;  /* a thread in a futex call on an address in [low, high) */
    uint64_t wait_address_high; /* waits for the GIL */
} lc_gil_view;

/* Whether a thread in a futex call on this address waits for the GIL. */
static inline bool lc_sleeps_on_gil(const lc_gil_view *gil, uint64_t address)
{
    return address >= gil->wait_address_low && address < gil->wait_address_high;
}

typedef struct {
    uint64_t thread_state;
    uint64_t tid;
} lc_thread_ref;

/* Names of the work that a lane's `work` word refers to. Empty texts: none, or not readable. */
typedef struct {
    lc_text callback;
    lc_text task;
} lc_work_names;

/* What kind of work a callback is: addresses that its name can be read by later. {0, 0}: it has no name. */
typedef struct {
    uint64_t key;
    uint64_t owner;
} lc_work_kind;

/* Where a callback was scheduled, in one word: the address of the file's name, a str, and the line. 0: not
 * known, or one of them is too large for its part. */
#define LC_SITE_LINE_SHIFT 48u

static inline uint64_t lc_site_of(uint64_t file, uint64_t line)
{
    const bool fits = file >> LC_SITE_LINE_SHIFT == 0 && line <= UINT16_MAX;
    return file != 0 && fits ? file | line << LC_SITE_LINE_SHIFT : 0;
}

static inline uint64_t lc_site_file(uint64_t site)
{
    return site & ((UINT64_C(1) << LC_SITE_LINE_SHIFT) - 1u);
}
static inline uint64_t lc_site_line(uint64_t site) { return site >> LC_SITE_LINE_SHIFT; }

typedef struct {
    uint64_t thread_state; /* of the thread that sleeps on a futex, which is not the GIL's */
    uint64_t futex;        /* its address */
    uint64_t known_holder; /* thread state that held the lock at the last look, 0 none */
    bool search;           /* look for the holder among all threads, if it is not the known one */
    bool futures;          /* of a wait for a Future's result: who will set it */
} lc_lock_question;

typedef struct {
    lc_lock_kind kind; /* LC_LOCK_NONE: the thread waits for no lock that is known here */
    lc_lock_proof proof;
    uint64_t holder_thread_state; /* 0 where the proof is LC_PROOF_NONE */
    uint32_t holder_tid;
    /* of the holder's frames the one in whose block it took the lock, the outermost is 1; 0 not known */
    uint8_t frame;
    lc_text module;  /* LC_LOCK_MODULE: whose import lock it is */
    uint64_t object; /* address of the lock; tells it from others while a thread waits for it */
} lc_lock_view;

/* What became of a look at tasks. */
typedef enum {
    LC_LOOK_NOTHING = 0, /* there is no asyncio whose tasks can be read */
    LC_LOOK_GOES_ON = 1, /* a part of it is done */
    LC_LOOK_IS_OVER = 2, /* and written */
    LC_LOOK_FOUND = 3,   /* the same, with a circle that was not told before */
    LC_LOOK_SUSPECTS = 4 /* the same, with one that the look before had not seen */
} lc_look_result;

struct lc_slot_writer;
typedef struct lc_frame_source lc_frame_source;
struct lc_frame_source {
    /* The frames of the thread with this PyThreadState address. */
    lc_walk_result (*walk)(lc_frame_source *self, uint64_t thread_state, lc_stack *out);
    /* Who holds the GIL of this thread's interpreter. */
    void (*gil)(lc_frame_source *self, uint64_t thread_state, lc_gil_view *out);
    /* The PyThreadState of the thread with this number, in any interpreter; 0: it has none. */
    uint64_t (*thread_state)(lc_frame_source *self, uint64_t tid);
    /* All threads of that interpreter, of the main one for the thread state 0; answers how many were
     * written to `out`. */
    uint32_t (*threads)(lc_frame_source *self, uint64_t thread_state, lc_thread_ref *out, uint32_t room);
    /* What `threading` calls the thread with this number; empty where that is not known. */
    lc_text (*thread_name)(lc_frame_source *self, uint64_t thread_state, uint64_t tid);
    /* Names of the running work of a thread, whose `stack` is of the same moment; NULL: it could not be
     * read. */
    void (*work)(lc_frame_source *self, uint64_t work, uint64_t thread_state, const lc_stack *stack,
                 lc_work_names *out);
    /* The same of work that has just ended, into `name` and `task` of the entry, which are zero; on the
     * thread that ran it, with the GIL or without. Must not allocate, lock or block either, and keeps
     * errno. NULL: there are no names. */
    void (*name_ended)(lc_frame_source *self, uint64_t work, lc_long_work *entry);
    /* Text of the str object at this address; empty if there is no such object. */
    lc_text (*text)(lc_frame_source *self, uint64_t str_object);
    /* Name of a kind of work; empty if it cannot be read. */
    lc_text (*kind_name)(lc_frame_source *self, lc_work_kind kind);
    /* The lock that a thread waits for, and its holder where that can be proven. */
    void (*lock)(lc_frame_source *self, const lc_lock_question *question, lc_lock_view *out);
    /* Whether a thread, which sleeps on this futex, waits for the lock at `object`. */
    bool (*waits_for)(lc_frame_source *self, uint64_t thread_state, uint64_t futex, uint64_t object);
    /* Goes on with a look at the tasks of asyncio, for about a millisecond. The last part writes it to the slot that the
     * writer was begun for, behind its heap_used. */
    lc_look_result (*look)(lc_frame_source *self, struct lc_slot_writer *into, uint64_t now_ns);
};
