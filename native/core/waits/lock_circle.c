#include "core/waits/wait_view.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/clock/clock.h"
#include "core/lane/lane.h"

static bool same_call(const lc_syscall_fields *a, const lc_syscall_fields *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* A thread that has its lock, and waits for the GIL on its way back, still looks as if it called acquire. */
static bool sleeps_for_lock(lc_frame_source *source, uint64_t thread_state, const lc_syscall_fields *call)
{
    lc_gil_view gil = {0};
    if (call->number != SYS_futex) {
        return false;
    }
    source->gil(source, thread_state, &gil);
    return !lc_sleeps_on_gil(&gil, call->args[0]);
}

/* A thread never waits for an RLock that it holds. */
static bool is_held(const lc_circle_link *link, const lc_lock_view *lock)
{
    const bool is_recursive = lock->kind == LC_LOCK_RECURSIVE || lock->kind == LC_LOCK_SHARED_RECURSIVE;
    return lock->kind != LC_LOCK_NONE && lock->proof != LC_PROOF_NONE &&
           !(is_recursive && lock->holder_thread_state == link->thread_state);
}

/* Without a timeout the C library passes no time, in `sem_wait` as in a condition's wait. Python's waits
 * are of these two kinds. */
static bool has_timeout(const lc_syscall_fields *call)
{
    const uint64_t operation = call->args[1] & FUTEX_CMD_MASK;
    return (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) && call->args[3] != 0;
}

static bool stood(uint32_t tid, uint64_t since_ns)
{
    uint64_t now_ns = 0;
    return since_ns != 0 && lc_thread_cpu_ns(tid, &now_ns) && now_ns == since_ns;
}

/* Whether a look now would find what the last one found: a lock changes hands only by its holder, which is
 * the next link, and none of them ran. But the holder of the last lock may become known. */
static bool is_unmoved(lc_lock_circle *circle)
{
    lc_circle_link *last = &circle->links[circle->length - 1];
    if (circle->closed == 0 && last->thread_state != 0 && lc_search_is_due(last->looks)) {
        return false;
    }
    for (uint32_t i = 0; i < circle->length; i++) {
        if (!stood(circle->links[i].tid, circle->links[i].cpu_ns)) {
            return false;
        }
    }
    last->looks++;
    return true;
}

/* Looks at what the link's thread waits for; answers whether a thread is known that holds it. `same`
 * becomes false if it is not what the last look saw. */
static bool look(lc_circle_link *link, lc_frame_source *source, uint64_t thread_state, uint32_t tid,
                 lc_slot_writer *writer, bool *same)
{
    lc_lock_view lock = {.kind = LC_LOCK_NONE};
    uint64_t from_ns = 0;
    const bool has_clock = lc_thread_cpu_ns(tid, &from_ns);
    const lc_syscall_fields call = lc_thread_call(tid);
    if (!sleeps_for_lock(source, thread_state, &call)) {
        *link = (lc_circle_link){.tid = tid, .cpu_ns = call.number < 0 ? 0 : from_ns};
        return false;
    }
    if (link->thread_state != thread_state || !same_call(&link->call, &call)) {
        *link = (lc_circle_link){.thread_state = thread_state, .tid = tid, .call = call};
        *same = false;
    }
    const lc_lock_question question = {
        .thread_state = thread_state,
        .futex = call.args[0],
        .known_holder = link->holder_thread_state,
        .search = lc_search_is_due(link->looks++),
        .futures = true,
    };
    source->lock(source, &question, &lock);
    const lc_ref module = lc_slot_put_text(writer, lock.module);
    const lc_syscall_fields now = lc_thread_call(tid);
    const bool held = is_held(link, &lock) && same_call(&now, &call);
    *same =
        *same && held && link->object == lock.object && link->holder_thread_state == lock.holder_thread_state;
    link->holder_thread_state = held ? lock.holder_thread_state : 0;
    link->object = lock.object;
    link->cpu_ns = has_clock && same_call(&now, &call) && stood(tid, from_ns) ? from_ns : 0;
    link->holder_tid = lock.holder_tid;
    link->module = module;
    link->kind = (uint8_t)lock.kind;
    link->proof = (uint8_t)lock.proof;
    link->frame = lock.frame;
    return held;
}

static bool is_closed(const lc_lock_circle *circle, uint32_t links)
{
    const uint64_t next = circle->links[links - 1].holder_thread_state;
    for (uint32_t i = 0; i < links; i++) {
        if (circle->links[i].thread_state == next) {
            return true;
        }
    }
    return false;
}

bool lc_lock_circle_follow(lc_lock_circle *circle, lc_frame_source *source, uint64_t thread_state,
                           uint64_t tid, lc_slot_writer *writer)
{
    const uint32_t before = circle->closed;
    bool same = true;
    if (circle->length != 0 && is_unmoved(circle)) {
        return circle->closed != 0;
    }
    circle->has_fine_clock = circle->length != 0 ? circle->has_fine_clock : lc_thread_clock_is_fine();
    circle->closed = 0;
    for (uint32_t i = 0; i < LC_CIRCLE_MAX; i++) {
        lc_circle_link *link = &circle->links[i];
        circle->length = i + 1;
        const bool held = look(link, source, thread_state, (uint32_t)tid, writer, &same);
        link->cpu_ns = circle->has_fine_clock ? link->cpu_ns : 0;
        if (!held) {
            return false;
        }
        if (is_closed(circle, i + 1)) {
            circle->closed = i + 1;
            same = same && before == circle->closed;
            circle->stored = circle->stored && same;
            return same;
        }
        thread_state = link->holder_thread_state;
        tid = link->holder_tid;
    }
    return false;
}

void lc_lock_circle_put(lc_lock_circle *circle, lc_frame_source *source, lc_slot_writer *writer,
                        lc_stack *stack)
{
    if (circle->stored) {
        return;
    }
    circle->stored = true;
    uint32_t before = LC_NO_REF;
    for (uint32_t i = 0; i < circle->closed; i++) {
        const lc_circle_link *link = &circle->links[i];
        const bool walked = source->walk(source, link->thread_state, stack) == LC_WALK_OK;
        const lc_wait_entry entry = {
            .tid = link->tid,
            .before = before,
            .holder_tid = link->holder_tid,
            .stack = walked ? lc_slot_put_stack(writer, stack) : LC_NO_REF,
            .module = link->module,
            .lock_kind = link->kind,
            .lock_proof = link->proof,
            .lock_frame = link->frame,
            .has_timeout = has_timeout(&link->call),
        };
        before = lc_slot_append(writer->slot, &entry, sizeof entry);
        if (before == LC_NO_REF) {
            return; /* the heap is full */
        }
    }
    LC_RELEASE(writer->slot->circle, before);
}
