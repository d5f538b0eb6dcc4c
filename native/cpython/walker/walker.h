/* The walk: from a thread state to a stack that the thread really had. */
#pragma once

#include "cpython/walker/chain.h"
#include "cpython/walker/code_cache.h"

#define LC_REMEMBERED_THREADS 16u
/* A few frames at the inner end are no code of the program's (the clean-up frame of __init__) or
 * not begun: room so that they do not shorten a stack that is cut. */
#define LC_INCOMPLETE_FRAMES_MAX 32u
#define LC_WALK_FRAMES_MAX (LC_STACK_FRAMES_MAX + LC_INCOMPLETE_FRAMES_MAX)
#define LC_WALK_CODE_SLOTS 1024u /* a power of two, well above LC_WALK_FRAMES_MAX */
#define LC_TEXT_BUFFERS 4u

typedef struct { /* a distinct code object of the walk */
    uint64_t address;
    lc_code_words words;
    lc_known_code *entry; /* NULL: not needed, or not proven */
    uint64_t serial;      /* of the entry when it was taken: an entry can be replaced */
    uint64_t deaths;      /* at the address, counted before the entry was proven or loaded */
    bool counted;         /* they are */
    bool trusted;         /* the entry was known without a look at the code object */
    bool fresh;           /* loaded by this reading, not yet proven */
} lc_walk_code;

typedef struct {
    uint16_t code; /* index */
    bool shown;
    bool fresh_position;
    uint32_t unit;
    lc_position position;
} lc_walk_frame;

typedef struct { /* one reading of a stack, with all that is known of its frames */
    lc_snapshot snapshot;
    lc_chain chain;
    uint32_t code_count;
    lc_walk_code codes[LC_WALK_FRAMES_MAX];
    lc_walk_frame frames[LC_CHAIN_MAX];
    bool counted;           /* of this interpreter's code objects the deaths are counted */
    bool learned;           /* something was put into the cache that has yet to be proven */
    uint64_t cpu_before_ns; /* 0 unknown */
    uint64_t cpu_after_ns;
} lc_reading;

typedef struct { /* what the last walk of a thread read */
    uint64_t thread_state;
    uint64_t used_at;
    uint32_t tid;
    lc_read_plan plan;
    /* What it found, if the thread stood still: valid for as long as its CPU time is `still.still_cpu_ns`
     * (0: nothing), and no text of the cache was replaced. */
    uint64_t cache_loads;
    lc_stack still;
} lc_remembered_thread;

typedef struct { /* where the GIL's words were when it was last asked about */
    uint64_t thread_state;
    uint64_t interp;
    uint64_t gil;
    uint64_t holder;
} lc_gil_memory;

struct lc_walker {
    bool clock_proves;       /* a thread's CPU clock tells whether it ran */
    uint64_t random;         /* state of the generator that keeps readings out of step with the program */
    bool came_and_went;      /* of the walk at hand: readings had different innermost frames */
    uint64_t innermost;      /* frame of its last reading, 0 none... */
    uint64_t innermost_code; /* ...and what it ran */
    lc_reading readings[2];
    lc_snapshot confirmation;
    lc_chain confirmation_chain;
    lc_read_plan plan;      /* what the latest reading touched */
    lc_read_plan head_plan; /* the part of it that holds the innermost frames */
    uint16_t code_slots[LC_WALK_CODE_SLOTS];
    lc_remembered_thread threads[LC_REMEMBERED_THREADS];
    lc_gil_memory gil;
    uint8_t scratch[LC_STR_BYTES_MAX];
    char text[LC_TEXT_BUFFERS][LC_STRING_MAX];
    char module[LC_STRING_MAX];
    lc_code_cache cache;
};

/* lc_frame_source.walk. Watchdog's thread; no GIL, lock, allocation; at most about
 * 24 readings with 9 looks behind each, all bounded by LC_PLAN_RANGES_MAX system calls (in practice one or
 * two). */
lc_walk_result lc_walk(lc_cpython_source *source, uint64_t thread_state, lc_stack *out);

/* ---- reading_codes.c --------------------------------------------------------------------------------
 * Code objects of a reading's frames: found, known from the cache or put there, and proven by what is read
 * later. */

/* Finds the code object and instruction of every frame, and what is known of the code objects. */
bool lc_reading_find_codes(lc_cpython_source *source, lc_reading *reading);
void lc_reading_find_positions(lc_cpython_source *source, lc_reading *reading);

/* Keeps of what a reading learned only what `later`, taken after it, proves. True if all is proven. */
bool lc_reading_settle(lc_cpython_source *source, lc_reading *reading, lc_snapshot *later);
/* The same for the last reading of a walk, or one that came to nothing. */
void lc_reading_settle_now(lc_cpython_source *source, lc_reading *reading);

/* The innermost frame, from `from` to `in_both`, from which on outwards all are of trusted code. A frame
 * that only one reading has may have ended since, and its code with it: then words and strings are read of
 * memory that was freed. */
uint32_t lc_reading_trusted_from(lc_cpython_source *source, const lc_reading *reading, uint32_t from,
                                 uint32_t in_both);

/* The same for all frames: the innermost one, from `from` on, from which on outwards no code object has
 * died, where deaths are counted, since the first reading had read its frames. What the second reading's
 * frames ran when they were copied is there until now, then, and what was read of it is its own. Without
 * this, strings can be read twice of an object that is dead, while the next one is made in its memory. */
uint32_t lc_reading_outlived_from(lc_cpython_source *source, const lc_reading *first,
                                  const lc_reading *second, uint32_t from);

/* The reading has been proven, from that frame on outwards: their code objects were there, and were what
 * their entries say. */
void lc_reading_trust(lc_reading *reading, uint32_t from, bool for_sure);

static inline void lc_walk_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}
