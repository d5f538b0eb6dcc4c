/* Brackets of LoopHooks around a library's functions, without a frame of Python's: methods of LoopHooks in
 * Python.
 *
 *     around_wait(function)                      its call is the loop's wait
 *     around_works(function)                     works that were begun in its call end with it
 *     around_work(function, attribute, name_of)  its call is a callback
 *
 * Each answers a callable that takes the function's place, and binds as functions do. The callback is what
 * the second argument does, an object that has (or has not) the attribute: its name is name_of(type(object),
 * type(object.attribute)), which is asked for once and kept; where name_of raises, it has none.
 */
#pragma once

#include <Python.h>

PyObject *lc_around_wait(PyObject *hooks, PyObject *function);
PyObject *lc_around_works(PyObject *hooks, PyObject *function);
PyObject *lc_around_work(PyObject *hooks, PyObject *args);
