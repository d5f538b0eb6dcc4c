#include <string.h>

#include "cpython/locks/lock_search.h"
#include "cpython/objects/objects.h"
#include "cpython/walker/walker.h"

enum { FRAMES_EACH = 96 /* from the innermost one: blocks further out are not found */ };

/* ---- a with block ---------------------------------------------------------------------------------- */

/* What `with` keeps on the value stack until the block ends. Up to 3.13 it is the lock's __exit__, bound. */
static bool is_bound_exit(const lc_cpython_source *source, uint64_t object, uint64_t lock, uint64_t definition)
{
    const lc_layout *l = &source->layout;
    return lc_type_at(source, object) == source->at.cfunction_type &&
           lc_word_at(source, object + l->cfunction_self) == lock &&
           lc_word_at(source, object + l->cfunction_def) == definition;
}

static bool stands_in_with(const lc_cpython_source *source, const lc_raw_frame *frame, const lc_found_lock *lock)
{
    const lc_lock_facts *facts = &source->locks;
    const int type = lock->kind == LC_LOCK_RECURSIVE ? LC_TYPE_RLOCK : LC_TYPE_LOCK;
    lc_frame_shape shape;
    uint64_t slots[LC_FRAME_SLOTS_MAX];
    if (!lc_frame_shape_read(source, frame, &shape)) {
        return false;
    }
    const uint32_t kept = lc_frame_stack_kept(source, frame, &shape);
    if (kept == 0 || !lc_frame_slots_read(source, frame, shape.locals, kept, slots)) {
        return false;
    }
    for (uint32_t i = 0; i < kept; i++) {
        if (source->layout.with_words == 1
                ? is_bound_exit(source, slots[i], lock->object, facts->exit_definitions[type])
                : i > 0 && slots[i] == lock->object && slots[i - 1] == facts->exit_descriptors[type]) {
            return true;
        }
    }
    return false;
}

static bool is_lock(const lc_cpython_source *source, uint64_t object)
{
    const uint64_t type = object == 0 ? 0 : lc_type_at(source, object);
    return type != 0 &&
           (type == source->locks.types[LC_TYPE_LOCK] || type == source->locks.types[LC_TYPE_RLOCK]);
}

/* Where an instance's attributes lie and how many of them to look at. Up to 3.12 in the order in which they were
 * set, and a condition sets `_lock` first; later in any order, behind the number of places. */
static uint64_t values_of(const lc_cpython_source *source, uint64_t instance, uint32_t *count)
{
    const lc_layout *l = &source->layout;
    if (l->values_before != LC_ABSENT) {
        *count = 1;
        return lc_word_at(source, instance - l->values_before) + l->values_tag;
    }
    const uint64_t values = instance + lc_word_at(source, lc_type_at(source, instance) + l->type_basic_size);
    *count = (uint32_t)(lc_word_at(source, values) & 0xFFu); /* struct _dictvalues: capacity */
    return values;
}

/* The lock of a threading.Condition: the only one among its attributes. 0 not known. */
static uint64_t lock_of_condition(const lc_cpython_source *source, uint64_t condition)
{
    uint32_t count = 0;
    uint64_t found = 0;
    const uint64_t values = values_of(source, condition, &count);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t value = lc_word_at(source, values + source->layout.values_first + 8u * (uint64_t)i);
        if (value != found && is_lock(source, value)) {
            if (found != 0) {
                return 0;
            }
            found = value;
        }
    }
    return found;
}

/* A condition lets go of its lock while it waits, in the middle of a block. Whether the thread waits so for this
 * lock, or for one that cannot be told. */
static bool waits_in_condition(const lc_cpython_source *source, const lc_chain *chain, uint32_t outer, uint64_t lock)
{
    for (uint32_t i = 0; i < outer; i++) {
        lc_frame_shape shape;
        uint64_t self;
        if (chain->frames[i].shim || !lc_frame_shape_read(source, &chain->frames[i], &shape) ||
            !lc_str_is(source, shape.qualname, "Condition.wait")) {
            continue;
        }
        const uint64_t its =
            lc_frame_slots_read(source, &chain->frames[i], 0, 1, &self) ? lock_of_condition(source, self) : 0;
        if (its == 0 || its == lock) {
            return true;
        }
    }
    return false;
}

/* ---- an import ------------------------------------------------------------------------------------- */

static bool same_text(const lc_cpython_source *source, uint64_t a, uint64_t b)
{
    char bytes[LC_STRING_MAX];
    char others[LC_STRING_MAX];
    lc_str_value first = {.bytes = bytes};
    lc_str_value second = {.bytes = others};
    return lc_read_str(source, a, source->walker->scratch, &first) &&
           lc_read_str(source, b, source->walker->scratch, &second) && first.length == second.length &&
           memcmp(bytes, others, first.length) == 0;
}

/* The thread that runs _find_and_load_unlocked for a module holds the module's lock. */
static bool loads_module(const lc_cpython_source *source, const lc_chain *chain, uint32_t i, uint64_t module)
{
    lc_frame_shape shape;
    uint64_t name;
    return lc_frame_shape_read(source, &chain->frames[i], &shape) &&
           lc_is_bootstrap(source, &shape, "_find_and_load_unlocked") &&
           lc_frame_slots_read(source, &chain->frames[i], 0, 1, &name) && same_text(source, name, module);
}

/* ---- put together ---------------------------------------------------------------------------------- */

/* The frame that proves it, 0 none. */
static uint64_t proof(lc_cpython_source *source, const lc_found_lock *lock, uint64_t thread_state,
                      uint32_t *frame_budget)
{
    const lc_chain *chain = lc_lock_chain(source, thread_state, FRAMES_EACH);
    for (uint32_t i = 0; chain != NULL && i < chain->count && *frame_budget > 0; i++) {
        if (chain->frames[i].shim) {
            continue;
        }
        (*frame_budget)--;
        const bool holds = lock->kind == LC_LOCK_MODULE ? loads_module(source, chain, i, lock->module)
                                                        : stands_in_with(source, &chain->frames[i], lock);
        if (holds) {
            const bool let_go = lock->kind == LC_LOCK_PLAIN && waits_in_condition(source, chain, i, lock->object);
            return let_go ? 0 : chain->frames[i].address;
        }
    }
    return 0;
}

bool lc_lock_is_held_by(lc_cpython_source *source, const lc_found_lock *lock, uint64_t thread_state,
                        uint32_t *frame_budget)
{
    /* Twice: frames may end while they are read, and their memory be another's. Who holds the lock keeps the frame. */
    const uint64_t first = proof(source, lock, thread_state, frame_budget);
    return first != 0 && proof(source, lock, thread_state, frame_budget) == first;
}
