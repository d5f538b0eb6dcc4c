/* Work that a loop does not name: what the loop has called. It is named by the task that the loop says it runs, or by the
 * outermost frame inside of those that were there when the loop began to run.
 */
#ifndef LOOPCANARY_WORK_CALLED_H
#define LOOPCANARY_WORK_CALLED_H

#include "cpython/source/cpython_source.h"

/* No object's address ends in this. Above it the loop's address, and in the upper 16 bits the number of frames. */
#define LC_WORK_CALLED UINT64_C(3)
#define LC_WORK_CALLED_TAG_MASK UINT64_C(7)
#define LC_WORK_CALLED_LOOP_MASK UINT64_C(0x0000FFFFFFFFFFF8)

/* `loop`: that asyncio says is running, 0 unknown; `frames_outside`: at most UINT16_MAX. Pure. */
static inline uint64_t lc_called_work(uint64_t loop, uint32_t frames_outside)
{
    return (uint64_t)frames_outside << 48 | (loop & LC_WORK_CALLED_LOOP_MASK) | LC_WORK_CALLED;
}

static inline bool lc_is_called_work(uint64_t work) { return (work & LC_WORK_CALLED_TAG_MASK) == LC_WORK_CALLED; }

/* The function that the loop called, in the thread's stack; empty: it called none of Python's. Pure. */
lc_text lc_called_function(uint64_t work, const lc_stack *stack);

/* Address of what asyncio says is the loop's current task; 0: none. Its type is not proven. Watchdog's thread. */
uint64_t lc_called_task(const lc_cpython_source *source, uint64_t work, uint64_t thread_state);

#endif
