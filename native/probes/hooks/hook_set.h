/* A set of functions whose entries are replaced in the objects that are asked for (native/core/got/got.h),
 * each by a hook of ours that calls what was there.
 *
 * What was there need not be the same in all objects, since others patch too. So each function has several
 * hooks, one for each address that was found in an entry. What a hook calls never changes again: threads may
 * be inside it.
 *
 * All functions hold the GIL.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/got/got.h"

#define LC_HOOK_WAYS 4u
#define LC_HOOK_OBJECTS 16u
#define LC_HOOK_PATCHES 16u

typedef struct {
    const char *name;
    void *fallback;
    void **next; /* what each of the hooks leads to */
    void *hooks[LC_HOOK_WAYS];
} lc_hooked_function;

typedef struct {
    unsigned uses; /* 0: the row is free */
    const void *base;
    lc_got_patch patches[LC_HOOK_PATCHES];
    uint8_t functions[LC_HOOK_PATCHES]; /* of the patches: which function each is of */
    size_t count;
} lc_hooked_object;

typedef struct {
    lc_hooked_function *functions;
    lc_hooked_object objects[LC_HOOK_OBJECTS];
} lc_hook_set;

/* What the hooks of a function lead to, and one of them for each way, by the macro HOOK(way, name, ...). */
#define LC_HOOKS(HOOK, result, name, parameters, ...)                                                        \
    typedef result(*name##_function) parameters;                                                             \
    static name##_function name##_next[LC_HOOK_WAYS];                                                        \
    HOOK(0, name, parameters, __VA_ARGS__)                                                                   \
    HOOK(1, name, parameters, __VA_ARGS__)                                                                   \
    HOOK(2, name, parameters, __VA_ARGS__)                                                                   \
    HOOK(3, name, parameters, __VA_ARGS__)

#define LC_HOOK_CODE(function) ((void *)(uintptr_t)(function))
#define LC_HOOK_ROW(name) LC_HOOK_ROW_LATE(name, LC_HOOK_CODE(name))
/* The same of a function that is found later, or not at all. */
#define LC_HOOK_ROW_LATE(name, fallback)                                                                     \
    {                                                                                                        \
        #name, fallback, (void **)name##_next,                                                               \
        {                                                                                                    \
            LC_HOOK_CODE(hooked_##name##_0), LC_HOOK_CODE(hooked_##name##_1),                                \
                LC_HOOK_CODE(hooked_##name##_2), LC_HOOK_CODE(hooked_##name##_3)                             \
        }                                                                                                    \
    }

/* Hooks the first `functions` of the set in the object; NULL: none could be. Counts: as many removals undo
 * it. */
const lc_hooked_object *lc_hook_set_add(lc_hook_set *set, lc_got_object where, uint8_t functions);
void lc_hook_set_remove(lc_hook_set *set, lc_got_object where);

/* Calls of Python, with `where` as lc_hook_where takes it: hook -> (name, ...), unhook -> None. */
PyObject *lc_hook_set_hook(lc_hook_set *set, PyObject *where, uint8_t functions);
PyObject *lc_hook_set_unhook(lc_hook_set *set, PyObject *where);

/* The object that Python means: an address in it (int), or its path or soname (str), which is the
 * argument's own text. False with an exception set: neither. */
bool lc_hook_where(PyObject *where, lc_got_object *out);
