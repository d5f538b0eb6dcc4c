/* An entry of a traceback that the code which a C function stands for would have left there.
 *
 * GIL held, with an exception set, which stays set.
 */
#ifndef LOOPCANARY_TRACEBACK_ENTRY_H
#define LOOPCANARY_TRACEBACK_ENTRY_H

#include <Python.h>
#include <frameobject.h>

static inline void lc_traceback_add(PyCodeObject *code, PyObject *globals, int lasti, int line)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    PyObject *entry = frame == NULL ? NULL
                                    : PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii",
                                                            traceback ? traceback : Py_None, frame, lasti, line);
    Py_XDECREF(frame);
    if (entry == NULL) {
        PyErr_Clear();
    } else {
        Py_XSETREF(traceback, entry);
    }
    PyErr_Restore(type, value, traceback);
}

#endif
