/* uvloop's handles in memory, and the one that runs as the word that a lane keeps of its work.
 *
 * A handle is told from whatever else lies there by its type, by the context that it was entered with, which no other
 * object of its kind has in that place, and by its references: a handle that is over has let go of its context,
 * and one that runs is held by what runs it beside the one whose it is. All reads are careful (memory_reader.h).
 */
#ifndef LOOPCANARY_WORK_UVLOOP_H
#define LOOPCANARY_WORK_UVLOOP_H

#include "cpython_source.h"
#include "flight_format.h"

/* No object's address ends in this; above it the address of a note. */
#define LC_WORK_UVLOOP UINT64_C(3)
#define LC_WORK_UVLOOP_TAG_MASK UINT64_C(7)

enum { LC_UVLOOP_OBJECT_WORDS = 32 }; /* that are looked at */

/* uvloop.loop.Handle or TimerHandle. */
typedef struct {
    uint64_t address;
    uint64_t bytes; /* of its objects */
} lc_uvloop_type;

/* uvloop/cbhandles.pxd has had the same fields since uvloop 0.12; in words from `context` on:
 *     Handle       context, _cancelled, meth_name, cb_type, callback, arg1
 *     TimerHandle  callback, args, _cancelled, timer, loop, context, _debug_info, __weakref__, _when
 */
typedef struct {
    uint64_t words[LC_UVLOOP_OBJECT_WORDS];
    uint32_t count;
    uint32_t context; /* its place in the words */
} lc_uvloop_object;

enum {
    LC_UVLOOP_NAME = 2,
    LC_UVLOOP_KIND = 3,
    LC_UVLOOP_FIRST = 5,
    LC_UVLOOP_TIMER_CALLBACK = -5,
    LC_UVLOOP_TIMER_ARGUMENTS = -4,
    LC_UVLOOP_TIMER_WHEN = 3,
};

enum { LC_UVLOOP_PLAIN = 1, LC_UVLOOP_KINDS = 5 }; /* of callbacks: the program's, and methods of uvloop's own */

/* What a handle says that it calls. */
typedef struct {
    bool is_plain;
    uint64_t callable; /* of the program's; 0: not a plain one */
    uint64_t name;     /* of uvloop's own method: a str, if it is one; 0: a plain one */
} lc_uvloop_call;

/* The object at `address`, if it is of this type, is run at the moment and was entered with this context. Any thread: under
 * the GIL it and what it holds stay so; else it may be over when this returns. */
bool lc_uvloop_read(const lc_cpython_source *source, uint64_t address, lc_uvloop_type type, uint64_t context,
                    lc_uvloop_object *out);

/* False: it has no such fields. Pure. */
bool lc_uvloop_call_of(const lc_uvloop_object *handle, lc_uvloop_call *out);

/* What the program's thread leaves to the watchdog to look up: where a handle is, if it is one. Written by the lane's
 * thread while none of its callbacks runs; whoever reads it looks at the lane's epoch before and after. */
typedef struct {
    lc_word handle; /* not verified */
    lc_word context;
    lc_word type; /* lc_uvloop_type */
    lc_word bytes;
} lc_uvloop_note;

static inline uint64_t lc_uvloop_word(const lc_uvloop_note *note)
{
    return (uint64_t)(uintptr_t)note | LC_WORK_UVLOOP;
}

static inline bool lc_is_uvloop_work(uint64_t work) { return (work & LC_WORK_UVLOOP_TAG_MASK) == LC_WORK_UVLOOP; }

/* The callable, or the str, that names what a note is of; 0: none. Cancelling a handle takes its callable away.
 * `has_ended`: the asker is the thread that ran it, which leaves its context right now. */
uint64_t lc_uvloop_work_object(const lc_cpython_source *source, uint64_t work, bool has_ended);

#endif
