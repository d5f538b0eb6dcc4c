/* What the parts add to the module (each says in its own file what that is), and what they share for it. GIL
 * held in all functions. */
#pragma once

#include <Python.h>
#include <errno.h>
#include <stdbool.h>

typedef PyObject *lc_binding(PyObject *module, PyObject *arguments);

lc_binding lc_hook_answers, lc_unhook_answers, lc_answers_gate, lc_answers_behind_tls, lc_answer_handled,
    lc_answer_named, lc_read_answers;
lc_binding lc_asgi_root, lc_asgi_route;
lc_binding lc_tk_learn, lc_tk_end, lc_tk_shown, lc_tk_updated, lc_tk_input;
lc_binding lc_learn_trio, lc_hook_uvloop, lc_unhook_uvloop;
lc_binding lc_fail_exit, lc_noted_end, lc_call_tree_of, lc_open_keeper;
PyObject *lc_gc_stamp(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* Types, and functions whose docstrings say what they do. Negative with an exception set. */
typedef int lc_addition(PyObject *module);

lc_addition lc_gevent_tracer_add, lc_calls_add, lc_start_add, lc_trio_run_add, lc_keeper_line_add,
    lc_keeper_page_add, lc_other_process_add, lc_other_tasks_add;

/* NULL, with the OSError of this errno set. */
static inline PyObject *lc_os_error(int error)
{
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

/* Appends an item, which it takes over. Where that fails, or the item is NULL with an exception, the list is
 * given back and NULL. */
static inline void lc_append(PyObject **list, PyObject *item)
{
    if (item == NULL || PyList_Append(*list, item) != 0) {
        Py_CLEAR(*list);
    }
    Py_XDECREF(item);
}

/* A list as a tuple, which takes its place; NULL where it is NULL, or with an exception set. */
static inline PyObject *lc_tuple_of(PyObject *list)
{
    PyObject *tuple = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}
