/* How locks look. Their structures are private to Modules/_threadmodule.c, so no header says it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <string.h>

#include "cpython/locks/locks.h"
#include "cpython/locks/lock_parts.h"
#include "cpython/objects/objects.h"
#include "cpython/source/outside.h"
#include "cpython/walker/frame_values.h"

/* ---- in this process -------------------------------------------------------------------------------
 *
 * Locks made for the purpose are looked at, once, with the GIL held. One that does not look as expected is
 * not read at all. */

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }

static bool learn_exit(PyObject *lock, uint64_t *descriptor, uint64_t *definition, uint64_t *descriptor_type)
{
    PyObject *exit = PyObject_GetAttrString((PyObject *)Py_TYPE(lock), "__exit__"); /* as it is: no binding */
    const bool known = exit != NULL && Py_IS_TYPE(exit, &PyMethodDescr_Type);
    if (known) {
        *descriptor = address_of(exit); /* lives with its type */
        *definition = address_of(((PyMethodDescrObject *)exit)->d_method);
        *descriptor_type = address_of(Py_TYPE(exit));
    }
    Py_XDECREF(exit);
    return known;
}

static bool is_bound_as_expected(const lc_cpython_source *source, PyObject *lock, uint64_t definition)
{
    PyObject *bound = PyObject_GetAttrString(lock, "__exit__");
    const bool as_expected =
        bound != NULL && lc_type_at(source, address_of(bound)) == source->at.cfunction_type &&
        lc_word_at(source, address_of(bound) + source->layout.cfunction_self) == address_of(lock) &&
        lc_word_at(source, address_of(bound) + source->layout.cfunction_def) == definition;
    Py_XDECREF(bound);
    return as_expected;
}

static bool acquired(PyObject *lock)
{
    PyObject *done = PyObject_CallMethod(lock, "acquire", NULL);
    Py_XDECREF(done);
    return done != NULL;
}

static void release(PyObject *lock)
{
    PyObject *done = PyObject_CallMethod(lock, "release", NULL);
    Py_XDECREF(done);
}

static bool is_taken(const lc_cpython_source *source, PyObject *lock)
{
    const lc_layout *l = &source->layout;
    if (l->lock_semaphore != LC_ABSENT) {
        uint32_t value = 1; /* of the semaphore: it has none left */
        const uint64_t semaphore = lc_word_at(source, address_of(lock) + l->lock_semaphore);
        return semaphore != 0 && lc_read(source->reader, semaphore, &value, sizeof value) && value == 0;
    }
    uint8_t bits = 0;
    return lc_read(source->reader, address_of(lock) + l->lock_mutex, &bits, sizeof bits) && bits == 1;
}

static bool learn_lock(lc_cpython_source *source, PyObject *threads, const char *maker, int type)
{
    lc_lock_facts *facts = &source->locks;
    PyObject *lock = PyObject_CallMethod(threads, maker, NULL);
    bool known = lock != NULL && acquired(lock);
    if (known) {
        const uint64_t owner = lc_word_at(source, address_of(lock) + source->layout.rlock_owner);
        known = is_taken(source, lock) && (type != LC_TYPE_RLOCK || owner == PyThread_get_thread_ident()) &&
                learn_exit(lock, &facts->exit_descriptors[type], &facts->exit_definitions[type],
                           &facts->descriptor_type) &&
                is_bound_as_expected(source, lock, facts->exit_definitions[type]);
        facts->types[type] = address_of(Py_TYPE(lock));
        release(lock);
    }
    Py_XDECREF(lock);
    return known;
}

/* 3.13 and later: what Thread.join waits for. */
static void learn_handle(lc_cpython_source *source, PyObject *threads)
{
    const lc_layout *l = &source->layout;
    if (l->handle_pointer == LC_ABSENT || !PyObject_HasAttrString(threads, "_make_thread_handle")) {
        return;
    }
    const unsigned long ident = PyThread_get_thread_ident();
    PyObject *handle = PyObject_CallMethod(threads, "_make_thread_handle", "k", ident);
    if (handle != NULL) {
        const uint64_t state = lc_word_at(source, address_of(handle) + l->handle_pointer);
        if (lc_word_at(source, state + l->handle_ident) == ident) {
            source->locks.types[LC_TYPE_HANDLE] = address_of(Py_TYPE(handle));
        }
        Py_DECREF(handle);
    }
}

void lc_locks_learn(lc_cpython_source *source)
{
    PyObject *threads = PyImport_ImportModule("_thread"); /* built in */
    if (threads != NULL) {
        source->locks.types[LC_TYPE_REFERENCE] = address_of(&_PyWeakref_RefType);
        source->locks.learned = learn_lock(source, threads, "allocate_lock", LC_TYPE_LOCK) &&
                                learn_lock(source, threads, "RLock", LC_TYPE_RLOCK);
        learn_handle(source, threads);
        Py_DECREF(threads);
    }
    PyErr_Clear();
}

/* ---- in another process ----------------------------------------------------------------------------
 *
 * It cannot be asked to make a lock: those that its threads have in their frames are looked at. A lock's
 * type is one whose own name says so, the `__exit__` of a lock one that is bound to a lock or belongs to
 * its type. A lock that is in no frame keeps no thread waiting. */

#define FRAMES_EACH 96u /* as far as locks.c looks for a block */
#define FRAMES_IN_ALL 2048u
#define NO_ADDRESS UINT64_MAX /* of what was not seen: equal to nothing, not even to an empty slot */

/* PyMethodDescrObject: public, and the same in all versions that there is a layout for. */
enum { DESCRIPTOR_TYPE = 16, DESCRIPTOR_METHOD = 40 };
_Static_assert(offsetof(PyDescrObject, d_type) == DESCRIPTOR_TYPE, "descrobject.h");
_Static_assert(offsetof(PyMethodDescrObject, d_method) == DESCRIPTOR_METHOD, "descrobject.h");

static const char *const type_names[LC_TYPE_REFERENCE] = {"_thread.lock", "_thread.RLock",
                                                          "_thread._ThreadHandle"};

/* The C string at `address` is this text. Not one byte more is read: its page may be the last one. */
static bool is_text(const lc_cpython_source *source, uint64_t address, const char *text)
{
    char copy[32];
    const size_t bytes = strlen(text) + 1u;
    return address != 0 && bytes <= sizeof copy && lc_read(source->reader, address, copy, bytes) &&
           memcmp(copy, text, bytes) == 0;
}

/* The kind of lock that a type is, LC_LOCK_TYPES for none; puts down a type that is seen for the first
 * time. */
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

static void see_frame(lc_cpython_source *source, const lc_outside_addresses *addresses,
                      const lc_raw_frame *frame, uint32_t managers_deep)
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
        lc_raw_frame inside;
        /* what is not in use any more is seen, too: it has to look like a lock */
        see(source, addresses, slots[i]);
        if (managers_deep > 0 && lc_manager_frame(source, slots[i], &inside)) {
            see_frame(source, addresses, &inside, managers_deep - 1);
        }
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
        const lc_chain *chain = lc_chain_of_thread(source, threads[i].thread_state, FRAMES_EACH);
        for (uint32_t j = 0; chain != NULL && j < chain->count && budget > 0; j++) {
            if (!chain->frames[j].shim) {
                see_frame(source, addresses, &chain->frames[j], LC_MANAGERS_DEEP);
                budget--;
            }
        }
    }
}
