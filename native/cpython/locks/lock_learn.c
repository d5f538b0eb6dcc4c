/* How locks look here. Their structures are private to Modules/_threadmodule.c: no header can be asked, so locks
 * made for the purpose are, once, with the GIL held. A lock that does not look as expected is not read at all. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/locks/lock_frames.h"
#include "cpython/locks/locks.h"

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }

/* `__exit__` as its type has it. */
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

/* The word that says that the lock is taken, while it is. */
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
