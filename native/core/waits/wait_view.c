#include "core/waits/wait_view.h"

#include <string.h>
#include <sys/syscall.h>

#include "core/lane/lane.h"
#include "core/waits/wait_target.h"

/* Threads that are asked whether they wait for the same lock: each costs the reading of one file, 8 us. */
enum { WAITER_THREADS_MAX = 64 };

static bool same_wait(const lc_wait_memory *memory, const lc_slot *slot, const lc_thread_reading *reading)
{
    return memory->serial == LC_LOAD(slot->serial) && reading->sched.on_cpu_ns != 0 &&
           memory->on_cpu_ns == reading->sched.on_cpu_ns &&
           memcmp(&memory->call, &reading->syscall, sizeof memory->call) == 0;
}

static void begin_wait(lc_wait_memory *memory, const lc_slot *slot, const lc_thread_reading *reading)
{
    *memory = (lc_wait_memory){
        .serial = LC_LOAD(slot->serial),
        .on_cpu_ns = reading->sched.on_cpu_ns,
        .call = reading->syscall,
    };
}

static void find_target(lc_wait_memory *memory, const lc_memory_reader *reader, const lc_thread_view *view,
                        lc_slot_writer *writer)
{
    lc_target target;
    lc_wait_target(reader, view->tid, &memory->call, &target);
    /* Descriptors and memory are the program's to change: it must still be waiting, or all this may be of
     * another. */
    if (target.kind == LC_TARGET_NONE || !lc_thread_view_in_call(view, &memory->call)) {
        return;
    }
    memory->target = lc_slot_put_text(writer, (lc_text){target.text, target.length});
    memory->target_kind = (uint8_t)target.kind;
    memory->target_pid = target.pid;
}

static void put_target(const lc_wait_memory *memory, lc_sample_entry *sample)
{
    sample->target = memory->target;
    sample->target_kind = memory->target_kind;
    sample->target_pid = memory->target_pid;
}

static bool waits_too(lc_frame_source *source, const lc_thread_ref *thread, uint64_t object)
{
    const lc_syscall_fields call = lc_thread_call(thread->tid);
    return call.number == SYS_futex && source->waits_for(source, thread->thread_state, call.args[0], object);
}

/* Threads of the interpreter, beside the stalled one (`thread_state`, `tid`), that sleep on a futex for the
 * lock at `object`: stored where they are as many as at any look before. */
static void put_waiters(lc_frame_source *source, uint64_t thread_state, uint64_t tid, uint64_t object,
                        lc_slot *slot)
{
    lc_thread_ref threads[WAITER_THREADS_MAX];
    uint64_t found[LC_SLOT_WAITERS_MAX];
    uint64_t count = 0;
    const uint32_t all = object == 0 ? 0 : source->threads(source, thread_state, threads, WAITER_THREADS_MAX);
    for (uint32_t i = 0; i < all; i++) {
        if (threads[i].tid == tid || threads[i].tid == 0 || !waits_too(source, &threads[i], object)) {
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

static uint64_t put_lock(lc_wait_memory *memory, lc_frame_source *source, const lc_thread_view *view,
                         uint64_t thread_state, lc_slot_writer *writer, lc_sample_entry *sample)
{
    lc_lock_view lock = {.kind = LC_LOCK_NONE};
    const lc_lock_question question = {
        .thread_state = thread_state,
        .futex = memory->call.args[0],
        .known_holder = memory->holder_thread_state,
        .search = lc_search_is_due(memory->looks),
    };
    memory->looks++;
    source->lock(source, &question, &lock);
    if (question.search && lock.kind != LC_LOCK_NONE) {
        put_waiters(source, thread_state, view->tid, lock.object, writer->slot);
    }
    if (lock.kind == LC_LOCK_NONE) {
        return 0;
    }
    const lc_ref module = lc_slot_put_text(writer, lock.module);
    const bool in_circle = lock.holder_thread_state != thread_state &&
                           lc_lock_circle_follow(&memory->circle, source, thread_state, view->tid, writer);
    if (!lc_thread_view_in_call(view, &memory->call)) {
        return 0;
    }
    memory->holder_thread_state = lock.holder_thread_state;
    sample->lock_kind = (uint8_t)lock.kind;
    sample->lock_proof = (uint8_t)lock.proof;
    sample->lock_frame = lock.frame;
    sample->target = module;
    sample->flags |= in_circle ? LC_SAMPLE_IN_CIRCLE : 0;
    sample->holder_tid = lock.holder_tid;
    return lock.holder_thread_state;
}

uint64_t lc_wait_view_put(lc_wait_memory *memory, const lc_memory_reader *reader, lc_frame_source *source,
                          const lc_thread_view *view, const lc_thread_reading *reading, uint64_t thread_state,
                          lc_slot_writer *writer, lc_sample_entry *sample)
{
    if (reading->syscall.number < 0) {
        return 0;
    }
    const bool sleeps_on_futex = reading->syscall.number == SYS_futex;
    if (!sleeps_on_futex && lc_syscall_shape_of(reading->syscall.number).kind == LC_SHAPE_NONE) {
        return 0;
    }
    const bool is_new = !same_wait(memory, writer->slot, reading);
    if (is_new) {
        begin_wait(memory, writer->slot, reading);
    }
    if (sleeps_on_futex) {
        return put_lock(memory, source, view, thread_state, writer, sample);
    }
    if (is_new) {
        find_target(memory, reader, view, writer);
    }
    put_target(memory, sample);
    return 0;
}
