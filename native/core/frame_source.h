/* The seam between the watchdog, which knows no interpreter, and what reads an interpreter's frames.
 *
 * native/cpython implements it for CPython; tests implement it with scripted stacks. All functions
 * run on the watchdog's thread, without the GIL, and must not allocate, lock, log or block; memory
 * they need is set aside when the source is made.
 */
#ifndef LOOPCANARY_FRAME_SOURCE_H
#define LOOPCANARY_FRAME_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "flight_format.h"

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
    uint64_t hash;  /* of codes and positions; equal stacks have equal hashes */
    uint64_t still_cpu_ns; /* CPU time of the thread, if it did not run while it was read; 0 if it did, or unknown */
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

typedef struct {
    uint64_t thread_state;
    uint64_t tid;
} lc_thread_ref;

/* Names of the work that a lane's `work` word refers to. Empty texts: none, or not readable. */
typedef struct {
    lc_text callback;
    lc_text task;
} lc_work_names;

typedef struct lc_frame_source lc_frame_source;
struct lc_frame_source {
    /* The frames of the thread with this PyThreadState address. */
    lc_walk_result (*walk)(lc_frame_source *self, uint64_t thread_state, lc_stack *out);
    /* Who holds the GIL of this thread's interpreter. */
    void (*gil)(lc_frame_source *self, uint64_t thread_state, lc_gil_view *out);
    /* All threads of that interpreter; answers how many were written to `out`. */
    uint32_t (*threads)(lc_frame_source *self, uint64_t thread_state, lc_thread_ref *out,
                        uint32_t room);
    /* Names of the running work (an asyncio handle, so far). */
    void (*work)(lc_frame_source *self, uint64_t work, lc_work_names *out);
    /* Text of a str object at this address; empty if it is none. */
    lc_text (*text)(lc_frame_source *self, uint64_t str_object);
};

#endif
