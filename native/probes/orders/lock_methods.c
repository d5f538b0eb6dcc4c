/* Hooks in the methods of `_thread.lock` and `_thread.RLock`.
 *
 * The types cannot be changed, but each call of a method reads the function from its PyMethodDef: bound methods, `with`, and the
 * interpreter's specialized calls do. Definitions are shared by all interpreters, whose locks are of other types: those are told
 * by that. A hook stays callable when it is taken out: a thread may wait in it. */
#include "probes/orders/held.h"

#include <string.h>

typedef enum { ACQUIRES, RELEASES, RELEASES_WHOLLY, RESTORES } lock_event;
enum { ROWS = 14, OF_LOCK = 0, OF_RLOCK = 1 };

typedef struct {
    uint8_t type;
    const char *name;
    lock_event event;
    PyMethodDef *definition; /* NULL: no hook was ever put in */
    void *original;
} lock_method;

static lock_method methods[ROWS] = {
    {OF_LOCK, "acquire", ACQUIRES, NULL, NULL},
    {OF_LOCK, "acquire_lock", ACQUIRES, NULL, NULL},
    {OF_LOCK, "__enter__", ACQUIRES, NULL, NULL},
    {OF_LOCK, "release", RELEASES, NULL, NULL},
    {OF_LOCK, "release_lock", RELEASES, NULL, NULL},
    {OF_LOCK, "__exit__", RELEASES, NULL, NULL},
    {OF_LOCK, "_at_fork_reinit", RELEASES_WHOLLY, NULL, NULL},
    {OF_RLOCK, "acquire", ACQUIRES, NULL, NULL},
    {OF_RLOCK, "__enter__", ACQUIRES, NULL, NULL},
    {OF_RLOCK, "release", RELEASES, NULL, NULL},
    {OF_RLOCK, "__exit__", RELEASES, NULL, NULL},
    {OF_RLOCK, "_release_save", RELEASES_WHOLLY, NULL, NULL},
    {OF_RLOCK, "_acquire_restore", RESTORES, NULL, NULL},
    {OF_RLOCK, "_at_fork_reinit", RELEASES_WHOLLY, NULL, NULL},
};
static PyTypeObject *types[2]; /* of the module _thread, which is never unloaded */
static destructor destructors[2];
static bool is_in;

/* ---- what a call asked for ---------------------------------------------------------------- */

/* Neither an error nor code of the program's. */
static bool is_number(PyObject *object, long number)
{
    int too_large;
    return PyLong_CheckExact(object) && PyLong_AsLongAndOverflow(object, &too_large) == number && too_large == 0;
}

static bool is_no(PyObject *blocking) { return blocking == Py_False || is_number(blocking, 0); }

static bool has_no_limit(PyObject *timeout)
{
    return is_number(timeout, -1) || (PyFloat_CheckExact(timeout) && PyFloat_AS_DOUBLE(timeout) == -1.0);
}

static bool waits_with(Py_ssize_t place, PyObject *name, PyObject *value)
{
    const bool is_timeout = name != NULL ? PyUnicode_CompareWithASCIIString(name, "timeout") == 0 : place == 1;
    return is_timeout ? has_no_limit(value) : !is_no(value);
}

/* Whether an acquire with these arguments waits until it has the lock. */
static bool waits(PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    const Py_ssize_t named = names != NULL ? PyTuple_GET_SIZE(names) : 0;
    bool answer = true;
    for (Py_ssize_t i = 0; i < count; i++) {
        answer = answer && waits_with(i, NULL, args[i]);
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        answer = answer && waits_with(0, PyTuple_GET_ITEM(names, i), args[count + i]);
    }
    return answer;
}

static bool waits_by(PyObject *args, PyObject *names)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    bool answer = waits(&PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), NULL);
    while (names != NULL && PyDict_Next(names, &at, &name, &value)) {
        answer = answer && waits_with(0, name, value);
    }
    return answer;
}

/* ---- the hooks ---------------------------------------------------------------------------- */

static inline bool is_ours(const lock_method *method, PyObject *lock)
{
    return is_in && (Py_IS_TYPE(lock, types[method->type]) || PyType_IsSubtype(Py_TYPE(lock), types[method->type]));
}

/* How often the lock was acquired that _acquire_restore has given back: the first word of its state. */
static uint32_t times_in(PyObject *state)
{
    state = PyTuple_CheckExact(state) && PyTuple_GET_SIZE(state) == 1 ? PyTuple_GET_ITEM(state, 0) : state; /* the arguments */
    PyObject *times = PyTuple_CheckExact(state) && PyTuple_GET_SIZE(state) == 2 ? PyTuple_GET_ITEM(state, 0) : NULL;
    int too_large = 0;
    const long number = times != NULL && PyLong_CheckExact(times) ? PyLong_AsLongAndOverflow(times, &too_large) : 1;
    return number > 0 && number < UINT16_MAX ? (uint32_t)number : 1u;
}

static PyObject *done(const lock_method *method, PyObject *lock, PyObject *state, bool waits_on, PyObject *result)
{
    if (result == NULL || !is_ours(method, lock)) {
        return result;
    }
    switch (method->event) {
    case ACQUIRES:
        if (result == Py_True) {
            lc_held_acquired(lock, waits_on, false, 1);
        }
        break;
    case RESTORES:
        lc_held_acquired(lock, true, true, times_in(state));
        break;
    case RELEASES:
    case RELEASES_WHOLLY:
        lc_held_released(lock, method->event == RELEASES_WHOLLY);
        break;
    }
    return result;
}

typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*fast_function_with_names)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* One for each way in which C functions are called, and each method. */
#define HOOKS(n)                                                                                                          \
    static PyObject *plain_##n(PyObject *self, PyObject *argument)                                                        \
    {                                                                                                                     \
        const PyCFunction original = (PyCFunction)methods[n].original;                                                    \
        return done(&methods[n], self, argument, true, original(self, argument));                                         \
    }                                                                                                                     \
    static PyObject *named_##n(PyObject *self, PyObject *args, PyObject *names)                                           \
    {                                                                                                                     \
        const PyCFunctionWithKeywords original = (PyCFunctionWithKeywords)methods[n].original;                            \
        PyObject *result = original(self, args, names);                                                                   \
        return done(&methods[n], self, args, waits_by(args, names), result);                                              \
    }                                                                                                                     \
    static PyObject *fast_##n(PyObject *self, PyObject *const *args, Py_ssize_t count)                                    \
    {                                                                                                                     \
        const fast_function original = (fast_function)methods[n].original;                                                \
        return done(&methods[n], self, NULL, true, original(self, args, count));                                          \
    }                                                                                                                     \
    static PyObject *fast_named_##n(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)             \
    {                                                                                                                     \
        const fast_function_with_names original = (fast_function_with_names)methods[n].original;                          \
        PyObject *result = original(self, args, count, names);                                                            \
        return done(&methods[n], self, NULL, waits(args, count, names), result);                                          \
    }
HOOKS(0) HOOKS(1) HOOKS(2) HOOKS(3) HOOKS(4) HOOKS(5) HOOKS(6) HOOKS(7) HOOKS(8) HOOKS(9) HOOKS(10) HOOKS(11) HOOKS(12) HOOKS(13)

#define CODE(function) ((void *)(uintptr_t)(function))
#define ROW(n) {CODE(plain_##n), CODE(named_##n), CODE(fast_##n), CODE(fast_named_##n)}
enum { PLAIN, NAMED, FAST, FAST_NAMED, WAYS };
static void *const hooks[ROWS][WAYS] = {ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6),
                                        ROW(7), ROW(8), ROW(9), ROW(10), ROW(11), ROW(12), ROW(13)};

/* WAYS: in none that is known here. */
static int way_of(int flags)
{
    switch (flags & ~METH_COEXIST) {
    case METH_NOARGS:
    case METH_O:
    case METH_VARARGS:
        return PLAIN;
    case METH_VARARGS | METH_KEYWORDS:
        return NAMED;
    case METH_FASTCALL:
        return FAST;
    case METH_FASTCALL | METH_KEYWORDS:
        return FAST_NAMED;
    default:
        return WAYS;
    }
}

/* ---- locks that die ----------------------------------------------------------------------- */

static void lock_dies(PyObject *lock)
{
    lc_held_died(lock);
    destructors[OF_LOCK](lock);
}

static void rlock_dies(PyObject *lock)
{
    lc_held_died(lock);
    destructors[OF_RLOCK](lock);
}

static const destructor dying[2] = {lock_dies, rlock_dies};

/* ---- in and out --------------------------------------------------------------------------- */

static PyMethodDef *definition_of(PyTypeObject *type, const char *name)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)type, name);
    PyMethodDef *definition = NULL;
    if (method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type)) {
        definition = ((PyMethodDescrObject *)method)->d_method; /* lives with the type */
    }
    Py_XDECREF(method);
    PyErr_Clear();
    return definition;
}

static bool put_into(lock_method *method, const void *const *ours)
{
    PyMethodDef *definition = definition_of(types[method->type], method->name);
    const int way = definition != NULL ? way_of(definition->ml_flags) : WAYS;
    if (way == WAYS) {
        PyErr_Format(PyExc_RuntimeError, "%s.%s is not as it was known", types[method->type]->tp_name, method->name);
        return false;
    }
    /* Two names of one definition, or one that was never taken out. */
    if (CODE(definition->ml_meth) != ours[way]) {
        method->definition = definition;
        method->original = CODE(definition->ml_meth);
        /* Interpreters with a GIL of their own call it as well. */
        __atomic_store_n(&definition->ml_meth, (PyCFunction)ours[way], __ATOMIC_RELEASE);
    }
    return true;
}

bool lc_lock_methods_put_in(PyTypeObject *lock, PyTypeObject *rlock)
{
    types[OF_LOCK] = lock;
    types[OF_RLOCK] = rlock;
    is_in = true;
    for (unsigned i = 0; i < ROWS; i++) {
        if (!put_into(&methods[i], (const void *const *)hooks[i])) {
            lc_lock_methods_take_out();
            return false;
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        if (types[i]->tp_dealloc != dying[i]) {
            destructors[i] = types[i]->tp_dealloc;
            types[i]->tp_dealloc = dying[i];
        }
    }
    return true;
}

void lc_lock_methods_take_out(void)
{
    is_in = false;
    for (unsigned i = 0; i < ROWS; i++) {
        PyMethodDef *definition = methods[i].definition;
        for (unsigned way = 0; definition != NULL && way < WAYS; way++) {
            if (CODE(definition->ml_meth) == hooks[i][way]) { /* nobody has put another one over it */
                __atomic_store_n(&definition->ml_meth, (PyCFunction)methods[i].original, __ATOMIC_RELEASE);
            }
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        if (types[i] != NULL && types[i]->tp_dealloc == dying[i]) {
            types[i]->tp_dealloc = destructors[i];
        }
    }
}
