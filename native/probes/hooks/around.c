
#include "probes/hooks/loop_hooks.h"
#include "probes/hooks/patched_function.h"
#include "cpython/objects/raised.h"

#define NAMES_MAX 1024

static PyObject *call_wait(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *hooks = patch->extra; /* NULL once the garbage collector has cleared it */
    if (hooks != NULL) {
        lc_loop_wait_begin(lc_loop_hooks_kind(hooks));
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_loop_wait_end();
    return result;
}

PyObject *lc_around_wait(PyObject *hooks, PyObject *function)
{
    return lc_patched_function_new(call_wait, function, hooks, 0);
}

static PyObject *call_scope(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    const uint32_t outer = lc_works_enter();
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_works_leave(outer);
    return result;
}

PyObject *lc_around_works(PyObject *hooks, PyObject *function)
{
    return lc_patched_function_new(call_scope, function, hooks, 0);
}

/* Its `extra`. */
enum { HOOKS, ATTRIBUTE, NAME_OF, NAMES, PARTS };

/* Kept in {type: {type: name}}; NULL without an exception: none is kept. Borrowed. */
static PyObject *known_name(PyObject *names, PyTypeObject *type, PyTypeObject *inner)
{
    PyObject *of_type = PyDict_GetItemWithError(names, (PyObject *)type);
    return of_type == NULL ? NULL : PyDict_GetItemWithError(of_type, (PyObject *)inner);
}

/* Asks for the name and keeps it; None where there is none. A new reference, or NULL with an exception
 * that is the program's. */
static PyObject *new_name(PyObject *parts, PyTypeObject *type, PyTypeObject *inner)
{
    PyObject *names = PyTuple_GET_ITEM(parts, NAMES);
    PyObject *name = PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(parts, NAME_OF), type, inner, NULL);
    if (name == NULL) {
        return lc_raised_is_ours(NULL) ? Py_NewRef(Py_None) : NULL;
    }
    PyObject *of_type = PyDict_GetItemWithError(names, (PyObject *)type);
    PyObject *fresh = of_type == NULL && PyDict_GET_SIZE(names) < NAMES_MAX ? PyDict_New() : NULL;
    if (fresh != NULL && PyDict_SetItem(names, (PyObject *)type, fresh) == 0) {
        of_type = fresh; /* which `names` has */
    }
    if (of_type != NULL && PyDict_GET_SIZE(of_type) < NAMES_MAX) {
        (void)PyDict_SetItem(of_type, (PyObject *)inner, name);
    }
    Py_XDECREF(fresh);
    PyErr_Clear();
    return name;
}

static PyObject *name_of(PyObject *parts, PyObject *object)
{
    PyObject *inner = PyObject_GetAttr(object, PyTuple_GET_ITEM(parts, ATTRIBUTE));
    if (inner == NULL && !lc_raised_is_ours(NULL)) {
        return NULL;
    }
    PyTypeObject *type = Py_TYPE(object), *inner_type = inner == NULL ? Py_TYPE(Py_None) : Py_TYPE(inner);
    PyObject *name = Py_XNewRef(known_name(PyTuple_GET_ITEM(parts, NAMES), type, inner_type));
    if (name == NULL) {
        PyErr_Clear();
        name = new_name(parts, type, inner_type);
    }
    Py_XDECREF(inner);
    return name;
}

static PyObject *call_work(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *parts = patch->extra;
    if (parts == NULL || PyVectorcall_NARGS(count) < 2) {
        return lc_patched_call_original(patch, args, count, names);
    }
    PyObject *work = name_of(parts, args[1]);
    const bool begun =
        work != NULL && lc_work_begin(lc_loop_hooks_kind(PyTuple_GET_ITEM(parts, HOOKS)), work);
    Py_XDECREF(work); /* which is kept until it ends */
    if (!begun) {
        return NULL;
    }
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_work_end();
    return result;
}

PyObject *lc_around_work(PyObject *hooks, PyObject *args)
{
    PyObject *function, *attribute, *asked;
    if (!PyArg_ParseTuple(args, "OUO", &function, &attribute, &asked)) {
        return NULL;
    }
    PyObject *names = PyDict_New();
    PyObject *parts = names == NULL ? NULL : PyTuple_Pack(PARTS, hooks, attribute, asked, names);
    PyObject *made = parts == NULL ? NULL : lc_patched_function_new(call_work, function, parts, 0);
    Py_XDECREF(parts);
    Py_XDECREF(names);
    return made;
}
