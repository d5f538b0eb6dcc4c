#include "probes/glib/loop.h"

#include <string.h>

#include "probes/glib/context.h"
#include "probes/glib/input.h"
#include "probes/hooks/loop_hooks.h"
#include "probes/hooks/patched_function.h"
#include "module/running_work.h"

static const char kind[] = "glib";

/* ---- runs -------------------------------------------------------------------------------- */

static PyTypeObject *boxed_type; /* gi's; NULL: not known */

/* PyGBoxed of PyGObject's public header pygobject-types.h: the value comes right after the object's head. */
static void *boxed_value(PyObject *object)
{
    if (boxed_type == NULL || !PyObject_TypeCheck(object, boxed_type) ||
        boxed_type->tp_basicsize < (Py_ssize_t)(sizeof(PyObject) + 2 * sizeof(void *))) {
        return NULL;
    }
    void *value;
    memcpy(&value, (const char *)object + sizeof(PyObject), sizeof value);
    return value;
}

enum { ANY_RUN, MAIN_LOOP_RUN };

static PyObject *call_run(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    if (patch->extra != NULL && !lc_call_ours(patch->extra, NULL)) {
        return NULL;
    }
    const lc_lane *lane = lc_thread_lane_get(kind);
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : lc_patched_call_original(patch, args, count, names);
    }
    if (patch->role == MAIN_LOOP_RUN && PyVectorcall_NARGS(count) > 0) {
        lc_glib_hook_loop(boxed_value(args[0]));
    }
    lc_running *work = lc_running_open(lane);
    const lc_loop_run run = lc_loop_run_begin(kind);
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_loop_run_end(run);
    if (work != NULL) {
        lc_running_go_on(work);
    }
    return result;
}

PyObject *lc_glib_run(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *seen, *boxed;
    if (!PyArg_ParseTuple(args, "OOO", &original, &seen, &boxed)) {
        return NULL;
    }
    if (PyType_Check(boxed)) {
        Py_XSETREF(boxed_type, (PyTypeObject *)Py_NewRef(boxed));
    }
    return lc_patched_function_new(call_run, original, seen, boxed == Py_None ? ANY_RUN : MAIN_LOOP_RUN);
}

/* ---- sources ----------------------------------------------------------------------------- */

static PyObject *call_source(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    lc_glib_input_end(); /* calls Python: the engine may stop meanwhile */
    lc_lane *lane = lc_thread_lane_get(kind);
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : lc_patched_call_original(patch, args, count, names);
    }
    lc_running running = {
        .note = {.callable = (uint64_t)(uintptr_t)lc_inside_partials(patch->original), .way = (uint32_t)patch->role}};
    const uint64_t begin_ns = patch->extra != NULL ? lc_now_ns() : 0;
    lc_running_begin(&running, lane);
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_running_end(&running);
    return lc_patched_tell_ran(patch, begin_ns, result);
}

PyObject *lc_glib_source(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function, *ran, *partial;
    const char *way;
    if (!PyArg_ParseTuple(args, "OsOO!", &function, &way, &ran, &PyType_Type, &partial)) {
        return NULL;
    }
    lc_learn_partial((PyTypeObject *)partial);
    return lc_patched_function_new(call_source, function, ran == Py_None ? NULL : ran,
                                   strcmp(way, "idle") == 0 ? LC_WAY_IDLE : LC_WAY_TIMEOUT);
}
