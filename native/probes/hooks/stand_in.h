/* What types of ours have in common whose objects take the place of a library's.
 *
 * Such an object begins with an lc_stand_in; the references that it owns follow. It keeps the first one to
 * its end, because it may still be called. The others go when the garbage collector breaks a cycle.
 */
#pragma once

#include <Python.h>

#include <stddef.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall; /* NULL: not called as a function */
    Py_ssize_t references;     /* how many follow */
} lc_stand_in;

int lc_stand_in_traverse(PyObject *self, visitproc visit, void *arg);
int lc_stand_in_clear(PyObject *self);
void lc_stand_in_dealloc(PyObject *self);

#define LC_STAND_IN_SLOTS                                                                                    \
    {Py_tp_traverse, lc_stand_in_traverse}, {Py_tp_clear, lc_stand_in_clear},                                \
    {                                                                                                        \
        Py_tp_dealloc, lc_stand_in_dealloc                                                                   \
    }
#define LC_STAND_IN_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE)
/* Defines `spec`, of the type `name_text` whose objects are a `structure`, with these slots besides. */
#define LC_STAND_IN_SPEC(spec, name_text, structure, more_flags, ...)                                        \
    static PyType_Slot spec##_slots[] = {__VA_ARGS__, LC_STAND_IN_SLOTS, {0, NULL}};                         \
    static PyType_Spec spec = {.name = "loopcanary._native." name_text,                                      \
                               .basicsize = sizeof(structure),                                               \
                               .flags = LC_STAND_IN_FLAGS | (more_flags),                                    \
                               .slots = spec##_slots}
/* Among the members of those that are called. */
#define LC_STAND_IN_VECTORCALL                                                                               \
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(lc_stand_in, vectorcall), READONLY, NULL}

/* A new object of the type, whose references are all NULL. NULL with an exception. */
void *lc_stand_in_new(PyTypeObject *type, vectorcallfunc vectorcall, Py_ssize_t references);

/* None and NULL are the same. */
static inline PyObject *lc_or_null(PyObject *object) { return object == Py_None ? NULL : Py_XNewRef(object); }

/* Adds the type to the module, under its name without the module's. Borrowed: the module keeps it. NULL
 * with an exception. */
PyTypeObject *lc_stand_in_add(PyObject *module, PyType_Spec *spec);
