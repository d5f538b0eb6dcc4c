#include <semaphore.h>

#include "cpython/locks/lock_parts.h"
#include "cpython/objects/objects.h"

enum {
    INNER_FRAMES = 5, /* from a module lock's acquire to the import that wants it */
    CALL_SLOTS = 12,  /* from the stack's top down to what is being called: its arguments lie in between */
    MUTEX_LOCKED = 1, /* bits of a PyMutex: Include/cpython/lock.h */
    MUTEX_HAS_PARKED = 2
};

static lc_lock_kind kind_of_type(const lc_lock_facts *facts, uint64_t type)
{
    if (type == 0) {
        return LC_LOCK_NONE;
    }
    return type == facts->types[LC_TYPE_LOCK]     ? LC_LOCK_PLAIN
           : type == facts->types[LC_TYPE_RLOCK]  ? LC_LOCK_RECURSIVE
           : type == facts->types[LC_TYPE_HANDLE] ? LC_LOCK_THREAD
                                                  : LC_LOCK_NONE;
}

/* The object itself, or what it is bound to as a builtin method. */
static lc_found_lock lock_behind(const lc_cpython_source *source, uint64_t object)
{
    const uint64_t type = lc_type_at(source, object);
    lc_found_lock found = {.kind = kind_of_type(&source->locks, type), .object = object};
    if (found.kind == LC_LOCK_NONE && type != 0 && type == source->at.cfunction_type) {
        found.object = lc_word_at(source, object + source->layout.cfunction_self);
        found.kind = kind_of_type(&source->locks, lc_type_at(source, found.object));
    }
    return found;
}

/* ---- up to 3.13: a lock is a semaphore, whose address the kernel tells ------------------------------ */

bool lc_sleeps_in_lock(const lc_cpython_source *source, uint64_t lock, uint64_t futex)
{
    const uint64_t semaphore = lc_word_at(source, lock + source->layout.lock_semaphore);
    return semaphore != 0 && futex >= semaphore && futex - semaphore < sizeof(sem_t);
}

/* Any slot will do, also one that is not in use any more: what is found is the lock of this address. The
 * handle of a thread has no such proof; it counts if it is the only one. */
static bool by_address(const lc_cpython_source *source, const uint64_t *slots, uint32_t count, uint64_t futex,
                       lc_found_lock *found)
{
    lc_found_lock handle = {.kind = LC_LOCK_NONE};
    bool one_handle = true;
    for (uint32_t i = 0; i < count; i++) {
        const lc_found_lock each = lock_behind(source, slots[i]);
        if (each.kind == LC_LOCK_THREAD) {
            one_handle = one_handle && (handle.object == 0 || handle.object == each.object);
            handle = each;
        } else if (each.kind != LC_LOCK_NONE && lc_sleeps_in_lock(source, each.object, futex)) {
            *found = each;
            return true;
        }
    }
    *found = handle;
    return handle.kind == LC_LOCK_THREAD && one_handle;
}

/* ---- from 3.14 on: a lock is a byte, and the thread sleeps on its own stack -------------------------- */

static bool has_parked(const lc_cpython_source *source, const lc_found_lock *lock)
{
    uint8_t bits = 0;
    return lc_read(source->reader, lock->object + source->layout.lock_mutex, &bits, sizeof bits) &&
           bits == (MUTEX_LOCKED | MUTEX_HAS_PARKED);
}

/* What a `with` block keeps for its end looks like a method's call, too. */
static bool is_kept_exit(const lc_lock_facts *facts, uint64_t method)
{
    return method == facts->exit_descriptors[LC_TYPE_LOCK] ||
           method == facts->exit_descriptors[LC_TYPE_RLOCK];
}

/* Slot i is the self of a method that is being called, or a bound method that is called without one. */
static lc_found_lock called_at(const lc_cpython_source *source, const uint64_t *slots, uint32_t used,
                               uint32_t i)
{
    const lc_found_lock none = {.kind = LC_LOCK_NONE};
    const lc_found_lock lock = lock_behind(source, slots[i]);
    if (lock.kind == LC_LOCK_NONE) {
        return none;
    }
    const bool is_self = lock.object == slots[i];
    const bool is_method = is_self && i > 0 && !is_kept_exit(&source->locks, slots[i - 1]) &&
                           lc_type_at(source, slots[i - 1]) == source->locks.descriptor_type;
    const bool is_bound = !is_self && i + 1 < used && slots[i + 1] == 0;
    return is_method || is_bound ? lock : none;
}

static bool by_call(const lc_cpython_source *source, const uint64_t *slots, uint32_t used,
                    lc_found_lock *found)
{
    for (uint32_t i = used; i > 0 && used - i < CALL_SLOTS; i--) {
        const lc_found_lock lock = called_at(source, slots, used, i - 1);
        if (lock.kind != LC_LOCK_NONE) {
            *found = lock;
            return lock.kind == LC_LOCK_THREAD || has_parked(source, &lock);
        }
    }
    return false;
}

/* ---- between processes: a semaphore, in all versions ------------------------------------------------- */

static bool by_shared_address(lc_cpython_source *source, const uint64_t *slots, uint32_t count,
                              uint64_t futex, lc_found_lock *found)
{
    for (uint32_t i = 0; i < count && found->kind == LC_LOCK_NONE; i++) {
        found->kind = lc_semlock_behind(source, slots[i], futex, &found->object);
    }
    return found->kind != LC_LOCK_NONE;
}

/* `_ModuleLock.acquire` sleeps on a lock of its own; whose it is, the import says that called it. */
static uint64_t module_of(const lc_cpython_source *source, const lc_chain *chain, uint32_t innermost)
{
    for (uint32_t i = innermost + 1; i < chain->count; i++) {
        const lc_raw_frame *frame = &chain->frames[i];
        lc_frame_shape shape;
        uint64_t name;
        if (frame->shim || !lc_frame_shape_read(source, frame, &shape)) {
            continue;
        }
        if (lc_is_bootstrap(source, &shape, "_find_and_load") ||
            lc_is_bootstrap(source, &shape, "_lock_unlock_module")) {
            return lc_frame_slots_read(source, frame, 0, 1, &name) ? name : 0; /* its first argument */
        }
    }
    return 0;
}

bool lc_lock_waited_for(lc_cpython_source *source, uint64_t thread_state, uint64_t futex,
                        lc_found_lock *found)
{
    const lc_chain *chain = lc_chain_of_thread(source, thread_state, INNER_FRAMES);
    uint32_t innermost = 0;
    while (chain != NULL && innermost < chain->count && chain->frames[innermost].shim) {
        innermost++;
    }
    if (chain == NULL || innermost == chain->count) {
        return false;
    }
    const lc_raw_frame *frame = &chain->frames[innermost];
    lc_frame_shape shape;
    uint64_t slots[LC_FRAME_SLOTS_MAX];
    if (!lc_frame_shape_read(source, frame, &shape)) {
        return false;
    }
    *found = (lc_found_lock){.kind = LC_LOCK_NONE};
    const bool by_futex = source->layout.lock_semaphore != LC_ABSENT;
    const uint32_t used = lc_frame_stack_used(source, frame, &shape);
    const uint32_t from = by_futex ? 0 : shape.locals;
    const uint32_t count = by_futex ? shape.locals + shape.stack : used;
    if (!lc_frame_slots_read(source, frame, from, count, slots)) {
        return false;
    }
    if (by_shared_address(source, slots, count, futex, found)) {
        return true;
    }
    if (!(by_futex ? by_address(source, slots, count, futex, found) : by_call(source, slots, count, found))) {
        return false;
    }
    if (found->kind == LC_LOCK_PLAIN && lc_is_bootstrap(source, &shape, "_ModuleLock.acquire")) {
        found->module = module_of(source, chain, innermost);
        found->kind = found->module != 0 ? LC_LOCK_MODULE : found->kind;
    }
    return true;
}
