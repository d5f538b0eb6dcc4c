/* A `with` block keeps on the value stack, until it ends, what it will call then: the bound __exit__, or
 * from 3.14 on the function and the object. */

#include <string.h>

#include "cpython/locks/lock_parts.h"
#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"

/* Lib/contextlib.py; its attribute `gen` has the generator */
static const char MANAGER[] = "_GeneratorContextManager";

static bool is_bound_exit(const lc_cpython_source *source, uint64_t object, uint64_t lock,
                          uint64_t definition)
{
    const lc_layout *l = &source->layout;
    return lc_type_at(source, object) == source->at.cfunction_type &&
           lc_word_at(source, object + l->cfunction_self) == lock &&
           lc_word_at(source, object + l->cfunction_def) == definition;
}

/* The exit of a SemLock is written in Python. */
static bool is_semlock_exit(lc_cpython_source *source, const uint64_t *slots, uint32_t i, uint64_t lock)
{
    const lc_layout *l = &source->layout;
    if (l->with_words != 1) {
        return i > 0 && lc_semlock_is_exit(source, slots[i - 1], slots[i], lock);
    }
    return lc_type_at(source, slots[i]) == source->at.method_type &&
           lc_semlock_is_exit(source, lc_word_at(source, slots[i] + l->method_function),
                              lc_word_at(source, slots[i] + l->method_self), lock);
}

/* Slot i, with the one before it, is what the `with` block of the lock will call. */
static bool is_exit(lc_cpython_source *source, const uint64_t *slots, uint32_t i, uint64_t lock, int type)
{
    const lc_lock_facts *facts = &source->locks;
    if (type == LC_TYPE_SEMLOCK) {
        return is_semlock_exit(source, slots, i, lock);
    }
    if (source->layout.with_words == 1) {
        return is_bound_exit(source, slots[i], lock, facts->exit_definitions[type]);
    }
    return i > 0 && slots[i] == lock && slots[i - 1] == facts->exit_descriptors[type];
}

/* The type's name is read once: it lives as long as contextlib does. */
static bool is_manager(lc_cpython_source *source, uint64_t object)
{
    const uint64_t type = lc_type_at(source, object);
    if (type == 0 || source->locks.manager_type != 0) {
        return type != 0 && type == source->locks.manager_type;
    }
    const bool is_one = lc_c_string_is(source, lc_word_at(source, type + source->layout.type_name), MANAGER);
    source->locks.manager_type = is_one ? type : 0;
    return is_one;
}

bool lc_manager_frame(lc_cpython_source *source, uint64_t slot, lc_raw_frame *out)
{
    const lc_layout *l = &source->layout;
    const bool is_bound = lc_type_at(source, slot) == source->at.method_type;
    const uint64_t manager = is_bound ? lc_word_at(source, slot + l->method_self) : slot;
    if (!is_manager(source, manager)) {
        return false;
    }
    const uint64_t generator = lc_attribute(source, manager, "gen");
    return lc_type_at(source, generator) == source->at.generator_type &&
           lc_frame_read(source, generator + l->generator_frame, out);
}

static bool is_in_with(lc_cpython_source *source, const lc_raw_frame *frame, uint64_t lock, int type,
                       uint32_t deep)
{
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
        lc_raw_frame inside;
        if (is_exit(source, slots, i, lock, type)) {
            return true;
        }
        if (deep > 0 && lc_manager_frame(source, slots[i], &inside) &&
            is_in_with(source, &inside, lock, type, deep - 1)) {
            return true;
        }
    }
    return false;
}

bool lc_is_in_with(lc_cpython_source *source, const lc_raw_frame *frame, uint64_t lock, int type)
{
    return is_in_with(source, frame, lock, type, LC_MANAGERS_DEEP);
}
