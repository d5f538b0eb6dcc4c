#include "probes/asyncio/asyncio.h"

#include "cpython/names/member_offset.h"
#include "module/agent.h"
#include "cpython/names/work.h"

#define FRAMES_MAX 16 /* asyncio notes ten (constants.DEBUG_STACK_DEPTH) */

/* One asyncio in one interpreter, as in probes/asyncio/handle.c. */
static struct {
    Py_ssize_t traceback; /* where Handle keeps it; 0: not known */
    PyObject *folder;     /* of asyncio's files, with a slash at its end; NULL: not known */
} learned;

/* The file's name up to its last slash; NULL, without an exception, if there is none. */
static PyObject *folder_of(PyObject *globals)
{
    PyObject *file = PyDict_GetItemString(globals, "__file__");
    if (file == NULL || !PyUnicode_Check(file)) {
        return NULL;
    }
    const Py_ssize_t slash = PyUnicode_FindChar(file, '/', 0, PyUnicode_GET_LENGTH(file), -1);
    PyObject *folder = slash < 0 ? NULL : PyUnicode_Substring(file, 0, slash + 1);
    PyErr_Clear();
    return folder;
}

void lc_asyncio_site_learn(PyObject *handle_type, PyObject *events_globals)
{
    learned.traceback = lc_member_offset(handle_type, "_source_traceback");
    Py_XSETREF(learned.folder, folder_of(events_globals));
}

static bool is_asyncios(PyObject *file)
{
    return learned.folder != NULL &&
           PyUnicode_Tailmatch(file, learned.folder, 0, PyUnicode_GET_LENGTH(file), -1) == 1;
}

/* Of a traceback.FrameSummary; 0: it lies in asyncio, or is something else. */
static uint64_t site_of_frame(PyObject *summary)
{
    PyObject *file = PyObject_GetAttrString(summary, "filename");
    PyObject *line = file == NULL ? NULL : PyObject_GetAttrString(summary, "lineno");
    uint64_t site = 0;
    if (line != NULL && PyUnicode_CheckExact(file) && PyLong_CheckExact(line) && !is_asyncios(file)) {
        const long number = PyLong_AsLong(line);
        site = number < 0 ? 0 : lc_site_of((uint64_t)(uintptr_t)file, (uint64_t)number);
    }
    Py_XDECREF(line);
    Py_XDECREF(file);
    return site;
}

/* Of a traceback.StackSummary, a list, innermost last. */
static uint64_t site_of_traceback(PyObject *traceback)
{
    if (!PyList_Check(traceback)) {
        return 0;
    }
    for (int i = 0; i < FRAMES_MAX; i++) {
        const Py_ssize_t index = PyList_GET_SIZE(traceback) - 1 - i;
        PyObject *summary = index < 0 ? NULL : Py_NewRef(PyList_GET_ITEM(traceback, index));
        if (summary == NULL) {
            return 0;
        }
        const uint64_t site = site_of_frame(summary);
        Py_DECREF(summary);
        if (site != 0) {
            return site;
        }
    }
    return 0;
}

/* New reference; NULL: the callback is no task's, or the task noted nothing. */
static PyObject *traceback_of_task(PyObject *callback)
{
    PyObject *task = (PyObject *)lc_task_of(&lc_the_agent.source, callback);
    if (task == NULL || Py_TYPE(task)->tp_getattro != PyObject_GenericGetAttr) {
        return NULL; /* the program's own way to find attributes is not run */
    }
    return PyObject_GetAttrString(task, "_source_traceback");
}

uint64_t lc_asyncio_site_of(PyObject *handle, PyObject *callback)
{
    PyObject *noted = learned.traceback == 0 ? NULL : *(PyObject **)((char *)handle + learned.traceback);
    if (noted == NULL || noted == Py_None) {
        return 0;
    }
    Py_INCREF(noted);
    PyObject *of_task = traceback_of_task(callback);
    const uint64_t site = site_of_traceback(of_task == NULL || of_task == Py_None ? noted : of_task);
    Py_XDECREF(of_task);
    Py_DECREF(noted);
    PyErr_Clear();
    return site;
}
