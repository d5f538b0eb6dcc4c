/* How many code objects have died, by address: while the number of an address stays, the code object that was
 * there is there, and what was learned from it need not be read again.
 *
 *   code_deaths.h   the numbers, and how the watchdog reads them; needs no Python
 *   code_deaths.c   counts, in the place of the code type's own destructor
 *
 * An address shares its number with others: that one of these dies costs a reading, nothing else.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a power of two; enough that a program that drops code all the time leaves most alone */
#define LC_DEATH_COUNTS 4096u

struct _object;
typedef void (*lc_code_destructor)(struct _object *code); /* CPython's `destructor` */

typedef struct {
    _Atomic uint64_t counts[LC_DEATH_COUNTS];
    lc_code_destructor *slot;    /* what the interpreter calls for a code object that dies... */
    lc_code_destructor counting; /* ...and what must be in it for the counts to be true */
    _Atomic bool lost;           /* something else was in it: deaths may be missing */
} lc_code_deaths;

static inline _Atomic uint64_t *lc_deaths_of(lc_code_deaths *deaths, uint64_t address)
{
    const uint64_t hash = (address >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    return &deaths->counts[hash >> 32 & (LC_DEATH_COUNTS - 1)];
}

/* One more death. Any thread. A thread that sees a later use of the memory sees the count too. */
static inline void lc_deaths_add(lc_code_deaths *deaths, uint64_t address)
{
    atomic_fetch_add_explicit(lc_deaths_of(deaths, address), 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

/* The number of deaths at the address, up to a time after all that this thread has read so far. False:
 * deaths are not counted, or were not always. Any thread, no lock. */
static inline bool lc_deaths_counted(lc_code_deaths *deaths, uint64_t address, uint64_t *count)
{
    if (deaths == NULL) {
        return false;
    }
    atomic_thread_fence(memory_order_acquire);
    *count = atomic_load_explicit(lc_deaths_of(deaths, address), memory_order_relaxed);
    if (__atomic_load_n(deaths->slot, __ATOMIC_RELAXED) != deaths->counting) {
        atomic_store_explicit(&deaths->lost, true, memory_order_relaxed);
    }
    return !atomic_load_explicit(&deaths->lost, memory_order_relaxed);
}

/* Begins to count the deaths of this process's code objects. NULL: it cannot be done here, and the code
 * objects have to be read. Each watch wants a leave.
 *
 * Thread: any; GIL held. Makes a code object and lets it die, to see that it is counted. No exception is
 * left set. Puts a function into PyCode_Type.tp_dealloc, which _Py_Dealloc (Objects/object.c) calls for
 * each object whose last reference goes; what is found there is called by it. */
lc_code_deaths *lc_code_deaths_watch(void);

/* GIL held. Gives the slot back, unless it is no longer ours: another function in it may call ours, which
 * then stays, and goes on counting. */
void lc_code_deaths_leave(void);
