#define PY_SSIZE_T_CLEAN
#include "probes/start/start.h"

#include <errno.h>
#include <string.h>

#include "core/start/start.h"
#include "module/agent.h"
#include "probes/hooks/patched_function.h"
#include "probes/hooks/raised.h"

static const char *const file_loader[] = {"_frozen_importlib_external", "FileLoader", "get_data"};
static const char *const find_and_load[] = {"_frozen_importlib", NULL, "_find_and_load"};

enum { PATCHES = 2 };
static PyObject *patches[PATCHES]; /* until they are put back */
static PyObject *main_names;       /* of __main__; borrowed: kept by it */

static void put_back(void);

/* ---- imports ------------------------------------------------------------------------------ */

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
        put_back();
        return lc_patched_call_original(patch, args, count, names);
    }
    Py_ssize_t length = 0;
    const char *name = PyVectorcall_NARGS(count) > 0 && lc_start_is_here() ? utf8(args[0], &length) : NULL;
    if (name == NULL) {
        return lc_patched_call_original(patch, args, count, names);
    }
    note_main();
    const bool is_last_of_site =
        lc_start_import_depth() == 0 && (is_called(args[0], "sitecustomize") || is_called(args[0], "usercustomize"));
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
    if (lc_start_awaited && data != NULL && PyBytes_Check(data) && PyVectorcall_NARGS(count) == 2 && lc_start_is_here()) {
        const char *path = utf8(args[1], &length);
        if (path != NULL) {
            lc_start_import_read(path, (size_t)length, (uint64_t)PyBytes_GET_SIZE(data));
        }
    }
    return data;
}

/* ---- putting them there, and back --------------------------------------------------------- */

/* What holds the function: a module, or a class in it. A new reference; NULL with an exception. */
static PyObject *holder_of(const char *const *where)
{
    PyObject *module = PyImport_ImportModule(where[0]);
    if (module == NULL || where[1] == NULL) {
        return module;
    }
    PyObject *holder = PyObject_GetAttrString(module, where[1]);
    Py_DECREF(module);
    return holder;
}

static const char *const *const places[PATCHES] = {find_and_load, file_loader};

static void put_there(int number, lc_patched_call call)
{
    PyObject *holder = holder_of(places[number]);
    PyObject *original = holder == NULL ? NULL : PyObject_GetAttrString(holder, places[number][2]);
    PyObject *patch = original == NULL ? NULL : lc_patched_function_new(call, original, NULL, 0);
    if (patch != NULL && PyObject_SetAttrString(holder, places[number][2], patch) == 0) {
        Py_XSETREF(patches[number], Py_NewRef(patch));
    }
    PyErr_Clear(); /* an importlib that we do not know: its imports are not seen */
    Py_XDECREF(patch);
    Py_XDECREF(original);
    Py_XDECREF(holder);
}

/* Where others have put something in their place since, that calls ours, which calls the original. */
static void put_back(void)
{
    const lc_raised before = lc_raised_take();
    for (int i = 0; i < PATCHES; i++) {
        PyObject *patch = patches[i], *holder = patch == NULL ? NULL : holder_of(places[i]);
        patches[i] = NULL;
        PyObject *now = holder == NULL ? NULL : PyObject_GetAttrString(holder, places[i][2]);
        if (now == patch && patch != NULL) {
            (void)PyObject_SetAttrString(holder, places[i][2], ((lc_patched *)patch)->original);
        }
        PyErr_Clear();
        Py_XDECREF(now);
        Py_XDECREF(holder);
        Py_XDECREF(patch);
    }
    lc_raised_put_back(before);
}

/* ---- the calls of Python ------------------------------------------------------------------ */

static PyObject *start_notes(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path;
    unsigned long long hook_ns, run_ns, slow_ns;
    int imports, unfrozen;
    if (!PyArg_ParseTuple(args, "O&KKKpp", PyUnicode_FSConverter, &path, &hook_ns, &run_ns, &slow_ns, &imports, &unfrozen)) {
        return NULL;
    }
    const int error = lc_start_create(PyBytes_AS_STRING(path), hook_ns, run_ns, slow_ns, lc_agent_tell, imports != 0, unfrozen != 0);
    Py_DECREF(path);
    if (error == EALREADY) { /* of an earlier engine: that one was the process's start */
        Py_RETURN_NONE;
    }
    if (error != 0) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    if (!imports) {
        Py_RETURN_NONE;
    }
    PyObject *main_module = PyImport_AddModule("__main__"); /* borrowed */
    main_names = main_module == NULL ? NULL : PyModule_GetDict(main_module);
    PyErr_Clear();
    put_there(0, call_import);
    put_there(1, call_get_data);
    Py_RETURN_NONE;
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
    put_back();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"start_notes", start_notes, METH_VARARGS, "See probes/start/start.h."},
    {"start_ready", start_ready, METH_NOARGS, "See probes/start/start.h."},
    {"start_frame", start_frame, METH_NOARGS, "See probes/start/start.h."},
    {"start_over", start_over, METH_NOARGS, "See probes/start/start.h."},
    {NULL, NULL, 0, NULL},
};

int lc_start_add(PyObject *module) { return PyModule_AddFunctions(module, functions); }
