/* How locks look in a process that cannot be asked to make one (lock_learn.c): by those that threads have in their
 * frames. A lock's type is one whose own name says so, the `__exit__` of a lock one that is bound to a lock or belongs
 * to its type. Locks that nobody has in a frame are in nobody's way. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <string.h>

#include "cpython/locks/lock_search.h"
#include "cpython/source/outside.h"

#define FRAMES_EACH 96u /* as far as lock_holder.c looks for a block */
#define FRAMES_IN_ALL 2048u
#define NO_ADDRESS UINT64_MAX /* of what was not seen: equal to nothing, not even to an empty slot */

/* PyMethodDescrObject: public, and the same in all versions that there is a layout for. */
enum { DESCRIPTOR_TYPE = 16, DESCRIPTOR_METHOD = 40 };
_Static_assert(offsetof(PyDescrObject, d_type) == DESCRIPTOR_TYPE, "descrobject.h");
_Static_assert(offsetof(PyMethodDescrObject, d_method) == DESCRIPTOR_METHOD, "descrobject.h");

static const char *const type_names[LC_TYPE_REFERENCE] = {"_thread.lock", "_thread.RLock", "_thread._ThreadHandle"};

/* The C string at `address` is this text. Not one byte more is read: its page may be the last one. */
static bool is_text(const lc_cpython_source *source, uint64_t address, const char *text)
{
    char copy[32];
    const size_t bytes = strlen(text) + 1u;
    return address != 0 && bytes <= sizeof copy && lc_read(source->reader, address, copy, bytes) &&
           memcmp(copy, text, bytes) == 0;
}

/* The kind of lock that a type is, LC_LOCK_TYPES for none; puts down a type that is seen for the first time. */
static int type_kind(lc_cpython_source *source, const lc_outside_addresses *addresses, uint64_t type)
{
    lc_lock_facts *facts = &source->locks;
    for (int kind = 0; kind < LC_TYPE_REFERENCE; kind++) {
        if (type != 0 && facts->types[kind] == type) {
            return kind;
        }
    }
    if (lc_type_at(source, type) != addresses->type_type) {
        return LC_LOCK_TYPES;
    }
    const uint64_t name = lc_word_at(source, type + source->layout.type_name);
    for (int kind = 0; kind < LC_TYPE_REFERENCE; kind++) {
        if (facts->types[kind] == 0 && is_text(source, name, type_names[kind])) {
            facts->types[kind] = type;
            return kind;
        }
    }
    return LC_LOCK_TYPES;
}

static bool is_exit(const lc_cpython_source *source, uint64_t definition)
{
    return is_text(source, lc_word_at(source, definition), "__exit__"); /* ml_name comes first */
}

static void see(lc_cpython_source *source, const lc_outside_addresses *addresses, uint64_t object)
{
    lc_lock_facts *facts = &source->locks;
    const uint64_t type = lc_type_at(source, object);
    if (type == 0) {
        return;
    }
    if (type == source->at.cfunction_type) {
        const uint64_t self = lc_word_at(source, object + source->layout.cfunction_self);
        const int kind = type_kind(source, addresses, lc_type_at(source, self));
        const uint64_t definition = lc_word_at(source, object + source->layout.cfunction_def);
        if (kind < LC_TYPE_HANDLE && is_exit(source, definition)) {
            facts->exit_definitions[kind] = definition;
        }
    } else if (type == addresses->descriptor_type) {
        const int kind = type_kind(source, addresses, lc_word_at(source, object + DESCRIPTOR_TYPE));
        if (kind < LC_TYPE_HANDLE && is_exit(source, lc_word_at(source, object + DESCRIPTOR_METHOD))) {
            facts->exit_descriptors[kind] = object;
        }
    } else {
        (void)type_kind(source, addresses, type);
    }
}

static void see_frame(lc_cpython_source *source, const lc_outside_addresses *addresses, const lc_raw_frame *frame)
{
    lc_frame_shape shape;
    uint64_t slots[LC_FRAME_SLOTS_MAX];
    if (!lc_frame_shape_read(source, frame, &shape)) {
        return;
    }
    const uint32_t all = shape.locals + shape.stack;
    const uint32_t count = all < LC_FRAME_SLOTS_MAX ? all : LC_FRAME_SLOTS_MAX;
    if (!lc_frame_slots_read(source, frame, 0, count, slots)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        see(source, addresses, slots[i]); /* what is not in use any more is seen, too: it has to look like a lock */
    }
}

static void begin(lc_cpython_source *source, const lc_outside_addresses *addresses)
{
    lc_lock_facts *facts = &source->locks;
    facts->learned = true;
    facts->types[LC_TYPE_REFERENCE] = addresses->reference_type;
    facts->descriptor_type = addresses->descriptor_type;
    for (int kind = 0; kind < LC_TYPE_HANDLE; kind++) {
        facts->exit_definitions[kind] = NO_ADDRESS;
        facts->exit_descriptors[kind] = NO_ADDRESS;
    }
}

void lc_outside_learn_locks(lc_cpython_source *source, const lc_outside_addresses *addresses,
                            const lc_thread_ref *threads, uint32_t count)
{
    uint32_t budget = FRAMES_IN_ALL;
    if (!source->locks.learned) {
        begin(source, addresses);
    }
    for (uint32_t i = 0; i < count && budget > 0; i++) {
        const lc_chain *chain = lc_lock_chain(source, threads[i].thread_state, FRAMES_EACH);
        for (uint32_t j = 0; chain != NULL && j < chain->count && budget > 0; j++) {
            if (!chain->frames[j].shim) {
                see_frame(source, addresses, &chain->frames[j]);
                budget--;
            }
        }
    }
}
