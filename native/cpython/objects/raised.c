#include "cpython/objects/raised.h"

/* Whether a handler of a signal raised what is set (src/loopcanary/whose_exception.py). What an interrupt
 * sets meanwhile takes its place. */
static bool is_of_handler(void)
{
    lc_raised raised = lc_raised_take();
    bool is_handlers = false;
    /* where a handler's frame would be; so most of what C code raises costs nothing */
    if (raised.traceback != NULL) {
        PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
        (void)PyException_SetTraceback(raised.value, raised.traceback);
        /* borrowed */
        PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "loopcanary.whose_exception");
        PyObject *answer =
            module == NULL ? NULL : PyObject_CallMethod(module, "is_of_handler", "O", raised.value);
        if (answer == NULL && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) {
            lc_raised_drop(raised);
            return true;
        }
        is_handlers = answer == Py_True;
        Py_XDECREF(answer);
    }
    lc_raised_put_back(raised);
    return is_handlers;
}

bool lc_raised_is_ours(PyObject *result)
{
    if (result == NULL && (!PyErr_ExceptionMatches(PyExc_Exception) || is_of_handler())) {
        return false;
    }
    PyErr_Clear();
    Py_XDECREF(result);
    return true;
}

/* On the main thread, in the middle of what it runs next. */
static int raise_again(void *value)
{
    PyErr_SetObject((PyObject *)Py_TYPE(value), value);
    Py_DECREF((PyObject *)value);
    return -1;
}

void lc_raised_pass_on(void)
{
    if (PyErr_Occurred() == NULL) {
        return;
    }
    if (is_of_handler()) {
        lc_raised raised = lc_raised_take();
        /* before 3.12 an interrupt that has just come has no value yet */
        PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
        if (Py_AddPendingCall(raise_again, raised.value) == 0) {
            raised.value = NULL; /* the call has it */
            lc_raised_drop(raised);
            return;
        }
        lc_raised_put_back(raised);
    }
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();
    } else if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_WriteUnraisable(NULL);
    }
    PyErr_Clear();
}
