/* What a sampled thread waits for: the target of its system call, or the lock and who holds it. */
#pragma once

#include "core/memory/memory_reader.h"
#include "core/flight/slot_writer.h"
#include "core/host/thread_view.h"

/* ---- lock_circle.c ----------------------------------------------------------------------------------
 * Threads that wait for each other in a circle: the chain of waits from a stalled thread on. */

/* Threads that a chain is followed over, the stalled one included. A longer circle is not found. */
#define LC_CIRCLE_MAX 8u

/* A thread of the chain, and what it was seen to wait for. */
typedef struct {
    uint64_t thread_state;        /* 0: not looked at */
    uint64_t holder_thread_state; /* 0 not known */
    uint64_t object;              /* the lock's, as lc_lock_view has it */
    lc_syscall_fields call;
    uint64_t cpu_ns; /* the thread's CPU time, if it did not run while it was looked at; else 0 */
    lc_ref module;
    uint32_t tid;
    uint32_t holder_tid;
    uint32_t looks; /* in this wait */
    uint8_t kind, proof, frame;
} lc_circle_link;

/* State that is kept from one sample of a wait to the next; zero at first. */
typedef struct {
    uint32_t length;     /* links that the last look went over */
    uint32_t closed;     /* links of the circle that the last look found; 0 it found none */
    bool stored;         /* it is in the slot */
    bool has_fine_clock; /* lc_thread_clock_is_fine, asked at the first look */
    lc_circle_link links[LC_CIRCLE_MAX];
} lc_lock_circle;

/* All threads are searched for a lock's holder at the first looks, then ever more rarely: a thread that
 * does not show at once mostly never does. A holder that was found is looked at each time. */
static inline bool lc_search_is_due(uint32_t looks) { return (looks & (looks - 1u)) == 0; }

/* Whether the chain of waits from a thread on comes back to one of its threads, for the second time in a
 * row and over the same locks. Each link is proven as lc_lock proves it, between two looks at the call
 * that its thread sleeps in: two readings of a file and one question for each. The watchdog's thread; no
 * allocation. Must come before the sample's stack is stored: it puts texts into the slot. While none of
 * the threads runs nothing can change, but that a holder becomes known: then it costs a reading of each
 * one's CPU clock. */
bool lc_lock_circle_follow(lc_lock_circle *circle, lc_frame_source *source, uint64_t thread_state,
                           uint64_t tid, lc_slot_writer *writer);

/* Stores the links of a circle that was followed, once. `stack`: scratch. */
void lc_lock_circle_put(lc_lock_circle *circle, lc_frame_source *source, lc_slot_writer *writer,
                        lc_stack *stack);

/* What is remembered of a wait from one sample to the next. A wait is the same one while the thread has
 * not run and is in the same call: then its target is not asked for again. */
typedef struct {
    uint64_t serial; /* of the slot that the references lie in; 0 nothing remembered */
    uint64_t on_cpu_ns;
    lc_syscall_fields call;
    lc_ref target;
    uint32_t target_pid;
    uint8_t target_kind;
    uint32_t looks;               /* at the lock, in this wait */
    uint64_t holder_thread_state; /* of the lock at the last look, 0 unknown */
    lc_lock_circle circle;
} lc_wait_memory;

/* Fills in the sample's target and lock fields. Answers the thread state of the lock's holder, 0 where
 * none is known or no lock is waited for: then the sample's lock_kind says which. The watchdog's thread;
 * no allocation. `thread_state`: of the sampled thread. A thread on a CPU costs one comparison. */
uint64_t lc_wait_view_put(lc_wait_memory *memory, const lc_memory_reader *reader, lc_frame_source *source,
                          const lc_thread_view *view, const lc_thread_reading *reading, uint64_t thread_state,
                          lc_slot_writer *writer, lc_sample_entry *sample);
