#include "core/waits/lock_waiters.h"

#include <sys/syscall.h>

#include "core/lane/lane.h"
#include "core/host/thread_view.h"

static bool waits(lc_frame_source *source, const lc_thread_ref *thread, uint64_t object)
{
    const lc_syscall_fields call = lc_thread_call(thread->tid);
    return call.number == SYS_futex && source->waits_for(source, thread->thread_state, call.args[0], object);
}

void lc_lock_waiters_put(lc_frame_source *source, uint64_t thread_state, uint64_t tid, uint64_t object, lc_slot *slot)
{
    lc_thread_ref threads[LC_WAITER_THREADS_MAX];
    uint64_t found[LC_SLOT_WAITERS_MAX];
    uint64_t count = 0;
    const uint32_t all = object == 0 ? 0 : source->threads(source, thread_state, threads, LC_WAITER_THREADS_MAX);
    for (uint32_t i = 0; i < all; i++) {
        if (threads[i].tid == tid || threads[i].tid == 0 || !waits(source, &threads[i], object)) {
            continue;
        }
        if (count < LC_SLOT_WAITERS_MAX) {
            found[count] = threads[i].tid;
        }
        count++;
    }
    if (count == 0 || count < LC_LOAD(slot->waiter_count)) {
        return;
    }
    for (uint64_t i = 0; i < count && i < LC_SLOT_WAITERS_MAX; i++) {
        LC_STORE(slot->waiters[i], found[i]);
    }
    LC_RELEASE(slot->waiter_count, count);
}
