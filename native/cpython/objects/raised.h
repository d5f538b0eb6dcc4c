/* Exceptions that are set while C code of ours runs: kept, handled as an except clause does, or passed on.
 *
 * GIL held in all functions.
 */
#pragma once

#include <Python.h>
#include <frameobject.h>
#include <stdbool.h>

/* An exception that was set, or none. */
typedef struct {
    PyObject *type, *value, *traceback;
} lc_raised;

/* After it none is set. */
static inline lc_raised lc_raised_take(void)
{
    lc_raised raised;
    PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    return raised;
}

/* What has been set meanwhile is dropped. */
static inline void lc_raised_put_back(lc_raised raised)
{
    PyErr_Restore(raised.type, raised.value, raised.traceback);
}

static inline void lc_raised_drop(lc_raised raised)
{
    Py_XDECREF(raised.type);
    Py_XDECREF(raised.value);
    Py_XDECREF(raised.traceback);
}

/* The end of a call of a function of ours, which reports its own failures: an Exception is dropped, and
 * the result (NULL: it raised) let go of. False, with it set: something that is not ours to stop, which a
 * signal's handler raised: any exception of a handler in Python, SystemExit, KeyboardInterrupt. */
bool lc_raised_is_ours(PyObject *result);

/* The same where `before` was set: it is put back, or dropped where the answer is false. */
static inline bool lc_raised_settle(lc_raised before, PyObject *result)
{
    if (lc_raised_is_ours(result)) {
        lc_raised_put_back(before);
        return true;
    }
    lc_raised_drop(before);
    return false;
}

/* What is set where no Python code can take it: what a signal's handler in Python raised, the main
 * thread's next Python code raises; an interrupt is asked for again, an Exception is ours and dropped, any
 * other is reported as Python reports those that nothing catches. None is set afterwards. */
void lc_raised_pass_on(void);

/* Between begin and end the exception that was set is the one that sys.exception() gives, as in an except
 * clause. */
typedef struct {
    PyObject *value;
    PyObject *outer;
} lc_handling;

static inline lc_handling lc_handling_begin(void)
{
    lc_raised raised = lc_raised_take();
    PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
    if (raised.traceback != NULL) {
        PyException_SetTraceback(raised.value, raised.traceback);
    }
    Py_XDECREF(raised.type);
    Py_XDECREF(raised.traceback);
    /* The innermost code's own, which may be none where PyErr_GetHandledException has that of code around
     * it. */
    const lc_handling handling = {raised.value, Py_XNewRef(PyThreadState_Get()->exc_info->exc_value)};
    PyErr_SetHandledException(handling.value);
    return handling;
}

static inline void lc_handling_end(lc_handling handling)
{
    PyErr_SetHandledException(handling.outer);
    Py_XDECREF(handling.outer);
    Py_XDECREF(handling.value);
}

/* The exception's traceback gets the entry that the code which a C function replaces would have left
 * there. */
static inline void lc_traceback_add(PyCodeObject *code, PyObject *globals, int lasti, int line)
{
    lc_raised raised = lc_raised_take();
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    PyObject *before = raised.traceback != NULL ? raised.traceback : Py_None;
    PyObject *entry = frame == NULL ? NULL
                                    : PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", before,
                                                            frame, lasti, line);
    Py_XDECREF(frame);
    if (entry != NULL) {
        Py_XSETREF(raised.traceback, entry);
    }
    lc_raised_put_back(raised);
}
