/* What a sampled thread waits for: the target of its system call, or the lock and who holds it. */
#pragma once

#include "core/flight/flight_format.h"
#include "core/watchdog/frame_source.h"
#include "core/memory/memory_reader.h"
#include "core/flight/slot_writer.h"
#include "core/host/thread_view.h"
#include "core/waits/lock_circle.h"

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
