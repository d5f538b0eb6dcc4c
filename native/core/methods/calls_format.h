/* The file of one thread's calls, as it lies beside the flight file: docs/internals/calls-format.md.
 *
 * A page of header and slow calls, the stack of open calls, marks, and the ring of words. Written by its
 * thread alone, under the GIL, with plain release stores; read by anybody at any time, also after the process
 * is dead.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define LC_CALLS_MAGIC "LCCALLS"
#define LC_CALLS_VERSION 3u
#define LC_CALLS_BYTE_ORDER 0x01020304u

enum {
    LC_CALLS_HEADER_BYTES = 4096,
    LC_CALLS_OPEN_MAX = 4096,   /* open calls that are noted; those inside them are counted only */
    LC_CALLS_MARKS = 4096,      /* a ring of times */
    LC_CALLS_MARK_WORDS = 4096, /* words from one mark to the next */
    LC_CALLS_SLOW_OFFSET = 2048,
    LC_CALLS_SLOW_MAX = 64 /* a ring of slow calls */
};

/* A word: 1 bit in (a call begins) or out, 20 bits of the code's number, 43 bits of microseconds since the
 * file's begin. */
#define LC_CALLS_IN (UINT64_C(1) << 63)
#define LC_CALLS_ID_BITS 20
#define LC_CALLS_ID_MAX ((UINT32_C(1) << LC_CALLS_ID_BITS) - 1u)
/* Numbers from this one on are of work, a loop's callback or task: such a word, always in, says what the
 * calls behind it belong to, until the next. */
#define LC_CALLS_WORK (UINT32_C(1) << (LC_CALLS_ID_BITS - 1))
#define LC_CALLS_WORK_NONE LC_CALLS_WORK        /* to none */
#define LC_CALLS_WORK_OTHER (LC_CALLS_WORK + 1) /* to some that has no number of its own */
#define LC_CALLS_WORK_FIRST (LC_CALLS_WORK + 2)
#define LC_CALLS_WORKS 1024u /* numbers, with these two */
#define LC_CALLS_TIME_BITS 43
#define LC_CALLS_TIME_MASK ((UINT64_C(1) << LC_CALLS_TIME_BITS) - 1u)

typedef struct {
    uint64_t id;
    uint64_t us; /* when it began: all 64 bits */
} lc_open_call;

/* A call that took too long, and no other inside it did. */
typedef struct {
    uint64_t id;
    uint64_t begin_us, end_us; /* all 64 bits */
    uint64_t end;              /* number of the word behind that of its end */
} lc_slow_call;

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint64_t file_bytes;
    uint64_t words;             /* room in the ring: a power of two */
    uint64_t tid;               /* of the thread */
    uint64_t opened_ns;         /* monotonic: the thread's first word is not older */
    uint64_t base_ticks;        /* where the microseconds begin */
    uint64_t us_q64;            /* microseconds a tick, times 2^64 */
    _Atomic uint64_t closed_ns; /* when the thread ended; 0: it has not */
    _Atomic uint64_t written;   /* words that were ever written */
    _Atomic uint64_t depth;     /* open calls, with those that are not noted */
    /* the last number of work that was written; in the upper half how many calls were open then; 0: none
     * was */
    _Atomic uint64_t at_work;
    _Atomic uint64_t slow; /* slow calls that were ever noted */
} lc_calls_header;

static_assert(sizeof(lc_calls_header) <= LC_CALLS_SLOW_OFFSET, "before the slow calls");
static_assert(sizeof(lc_open_call) == 16, "documented");
static_assert(LC_CALLS_SLOW_OFFSET + LC_CALLS_SLOW_MAX * sizeof(lc_slow_call) <= LC_CALLS_HEADER_BYTES,
              "a page with the header");

#define LC_CALLS_OPEN_OFFSET ((uint64_t)LC_CALLS_HEADER_BYTES)
#define LC_CALLS_MARKS_OFFSET (LC_CALLS_OPEN_OFFSET + sizeof(lc_open_call) * LC_CALLS_OPEN_MAX)
#define LC_CALLS_WORDS_OFFSET (LC_CALLS_MARKS_OFFSET + 8u * LC_CALLS_MARKS)
