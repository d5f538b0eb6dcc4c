/* A callable that probes put in the place of a library's function. It calls that function, the original.
 *
 * It binds as functions do, and has the original's attributes (name, documentation, code, signature). What it
 * does beside calling the original is a C function's work. Each patch has its own state, so that installs may
 * lie one over the other.
 */
#pragma once

#include "probes/hooks/stand_in.h"

typedef struct lc_patched lc_patched;

typedef PyObject *(*lc_patched_call)(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names);

struct lc_patched {
    lc_stand_in stand_in;
    PyObject *original;
    PyObject *extra; /* of its maker; may be NULL */
    long role;       /* the same */
    lc_patched_call call;
};

/* Adds the types PatchedFunction and PatchedBuiltin to the module; negative with an exception set where
 * that fails. */
int lc_patched_function_add(PyObject *module);

/* A new patch, NULL with an exception. `extra` may be NULL. GIL held. */
PyObject *lc_patched_function_new(lc_patched_call call, PyObject *original, PyObject *extra, long role);

/* The same for a function written in C: as an attribute of a class it is not bound, as it was not. */
PyObject *lc_patched_builtin_new(lc_patched_call call, PyObject *original, PyObject *extra, long role);

/* Calls extra(original, begin_ns, now), of ours, where there is an `extra`. Answers `result` (NULL: an
 * exception is set, and stays set), or NULL with another exception that is not ours to stop. */
PyObject *lc_patched_tell_ran(lc_patched *patch, uint64_t begin_ns, PyObject *result);

static inline PyObject *lc_patched_call_original(lc_patched *patch, PyObject *const *args, size_t count,
                                                 PyObject *names)
{
    return PyObject_Vectorcall(patch->original, args, count, names);
}
