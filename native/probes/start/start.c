/* The start of the program: which modules it imports, and the moments that hooks see
 * (native/core/start/start.h).
 *
 * Imports are seen in importlib's own `_find_and_load`, which C and Python call for each module that is not
 * there yet, and what their loaders read in FileLoader.get_data. The caller hooks both, and takes the hooks
 * out when it is told that the start is over.
 *
 * Adds to the module; negative with an exception set where that fails:
 *   start_notes(path, hook_ns, run_ns, slow_ns, over, unfrozen) -> bool
 *                                                makes the file and begins; a start that takes longer than
 *                                                slow_ns (0: none does) is told to those who take stalls.
 *                                                Whether imports are to be hooked: over() is then called at
 *                                                the end (None: without imports). OSError
 *   start_import(function), start_read(function) the hooks
 *   start_ready(), start_frame()                 note the moment, if it is the first of its kind: an
 *                                                application object is made, a frame is shown
 *   start_over()                                 the main module has ended */
#define PY_SSIZE_T_CLEAN
#include "module/bindings.h"

#include <errno.h>
#include <string.h>

#include "core/start/start.h"
#include "module/agent.h"
#include "probes/hooks/patched_function.h"
#include "cpython/objects/raised.h"

static PyObject *put_back;   /* takes both hooks out; NULL: they are out */
static PyObject *main_names; /* of __main__; borrowed: kept by it */

/* False with an exception that belongs to the program. */
static bool hooks_are_out(void)
{
    const lc_raised before = lc_raised_take();
    PyObject *call = put_back;
    put_back = NULL;
    PyObject *done = call == NULL ? Py_NewRef(Py_None) : PyObject_CallNoArgs(call);
    Py_XDECREF(call);
    return lc_raised_settle(before, done);
}

static bool is_called(PyObject *name, const char *text)
{
    return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, text) == 0;
}

static void note_main(void)
{
    if (lc_start_import_depth() == 0 && main_names != NULL && PyEval_GetGlobals() == main_names) {
        lc_start_note(LC_START_MAIN, false);
    }
}

/* UTF-8 of a str is kept by it. An exception that is set stays set; NULL: there is none. */
static const char *utf8(PyObject *text, Py_ssize_t *length)
{
    const char *bytes = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, length) : NULL;
    if (bytes == NULL) {
        PyErr_Clear();
    }
    return bytes;
}

static PyObject *call_import(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    if (!lc_start_awaited) {
        return hooks_are_out() ? lc_patched_call_original(patch, args, count, names) : NULL;
    }
    Py_ssize_t length = 0;
    const char *name = PyVectorcall_NARGS(count) > 0 && lc_start_is_here() ? utf8(args[0], &length) : NULL;
    if (name == NULL) {
        return lc_patched_call_original(patch, args, count, names);
    }
    note_main();
    const bool is_last_of_site = lc_start_import_depth() == 0 &&
                                 (is_called(args[0], "sitecustomize") || is_called(args[0], "usercustomize"));
    const uint64_t number = lc_start_import_begin(name, (size_t)length);
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_start_import_end(number, result == NULL);
    if (is_last_of_site) {
        lc_start_note(LC_START_SITE_OVER, true);
    }
    return result;
}

static PyObject *call_get_data(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *data = lc_patched_call_original(patch, args, count, names);
    Py_ssize_t length = 0;
    if (lc_start_awaited && data != NULL && PyBytes_Check(data) && PyVectorcall_NARGS(count) == 2 &&
        lc_start_is_here()) {
        const char *path = utf8(args[1], &length);
        if (path != NULL) {
            lc_start_import_read(path, (size_t)length, (uint64_t)PyBytes_GET_SIZE(data));
        }
    }
    return data;
}

static PyObject *start_notes(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path, *over;
    unsigned long long hook_ns, run_ns, slow_ns;
    int unfrozen;
    if (!PyArg_ParseTuple(args, "O&KKKOp", PyUnicode_FSConverter, &path, &hook_ns, &run_ns, &slow_ns, &over,
                          &unfrozen)) {
        return NULL;
    }
    const bool imports = over != Py_None;
    const int error = lc_start_create(PyBytes_AS_STRING(path), hook_ns, run_ns, slow_ns, lc_agent_tell,
                                      imports, unfrozen != 0);
    Py_DECREF(path);
    if (error == EALREADY) { /* of an earlier engine: that one was the process's start */
        Py_RETURN_FALSE;
    }
    if (error != 0) {
        return lc_os_error(error);
    }
    if (imports) {
        PyObject *main_module = PyImport_AddModule("__main__"); /* borrowed */
        main_names = main_module == NULL ? NULL : PyModule_GetDict(main_module);
        PyErr_Clear();
        Py_XSETREF(put_back, Py_NewRef(over));
    }
    return PyBool_FromLong(imports);
}

static PyObject *start_import(PyObject *Py_UNUSED(module), PyObject *original)
{
    return lc_patched_function_new(call_import, original, NULL, 0);
}

static PyObject *start_read(PyObject *Py_UNUSED(module), PyObject *original)
{
    return lc_patched_function_new(call_get_data, original, NULL, 0);
}

static PyObject *start_ready(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lc_start_note(LC_START_READY, false);
    Py_RETURN_NONE;
}

static PyObject *start_frame(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lc_start_note(LC_START_FRAME, false);
    Py_RETURN_NONE;
}

static PyObject *start_over(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lc_start_note(LC_START_OVER, false);
    return hooks_are_out() ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"start_notes", start_notes, METH_VARARGS, "See probes/start/start.c."},
    {"start_import", start_import, METH_O, "See probes/start/start.c."},
    {"start_read", start_read, METH_O, "See probes/start/start.c."},
    {"start_ready", start_ready, METH_NOARGS, "See probes/start/start.c."},
    {"start_frame", start_frame, METH_NOARGS, "See probes/start/start.c."},
    {"start_over", start_over, METH_NOARGS, "See probes/start/start.c."},
    {NULL, NULL, 0, NULL},
};

int lc_start_add(PyObject *module) { return PyModule_AddFunctions(module, functions); }
