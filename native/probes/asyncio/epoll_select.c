#include "probes/asyncio/epoll_select.h"

#include <math.h>
#include <sys/epoll.h>

/* selectors.py */
enum { EVENT_READ = 1, EVENT_WRITE = 2, KEY_FIELDS = 4, KEY_EVENTS = 2 };

#define LONGEST_S 1e9 /* asyncio waits for a day at most; beyond, math.ceil may have something to say */

bool lc_epoll_select_open(PyObject *selector, lc_epoll_select *out)
{
    PyObject *epoll = PyObject_GetAttrString(selector, "_selector");
    out->poll = epoll == NULL ? NULL : PyObject_GetAttrString(epoll, "poll");
    out->fd_to_key = out->poll == NULL ? NULL : PyObject_GetAttrString(selector, "_fd_to_key");
    Py_XDECREF(epoll);
    if (out->fd_to_key != NULL && PyDict_CheckExact(out->fd_to_key)) {
        return true;
    }
    PyErr_Clear();
    Py_CLEAR(out->poll);
    Py_CLEAR(out->fd_to_key);
    return false;
}

bool lc_epoll_select_takes(const lc_epoll_select *select, PyObject *timeout, bool is_zero)
{
    return select->poll != NULL && select->fd_to_key != NULL &&
           (is_zero || timeout == Py_None ||
            (PyFloat_CheckExact(timeout) && PyFloat_AS_DOUBLE(timeout) <= LONGEST_S));
}

/* In seconds; epoll counts in milliseconds: rounded up, so that it waits for at least as long. */
static PyObject *timeout_of(PyObject *timeout)
{
    if (timeout == Py_None) {
        return PyLong_FromLong(-1);
    }
    const double seconds = PyFloat_CheckExact(timeout) ? PyFloat_AS_DOUBLE(timeout) : 0.0;
    return seconds > 0.0 ? PyFloat_FromDouble(ceil(seconds * 1e3) * 1e-3) : PyLong_FromLong(0);
}

/* poll(timeout, max(len(fd_to_key), 1)) */
static PyObject *poll_epoll(const lc_epoll_select *select, PyObject *timeout)
{
    const Py_ssize_t registered = PyDict_GET_SIZE(select->fd_to_key);
    PyObject *seconds = timeout_of(timeout), *room = PyLong_FromSsize_t(registered > 0 ? registered : 1);
    PyObject *events = NULL;
    if (seconds != NULL && room != NULL) {
        PyObject *arguments[] = {seconds, room};
        events = PyObject_Vectorcall(select->poll, arguments, 2, NULL);
    }
    Py_XDECREF(seconds);
    Py_XDECREF(room);
    return events;
}

/* key.events, of a named tuple. Negative with an exception. */
static long wanted_events(PyObject *key)
{
    if (PyTuple_Check(key) && PyTuple_GET_SIZE(key) == KEY_FIELDS) {
        return PyLong_AsLong(PyTuple_GET_ITEM(key, KEY_EVENTS));
    }
    PyObject *events = PyObject_GetAttrString(key, "events");
    const long wanted = events == NULL ? -1 : PyLong_AsLong(events);
    Py_XDECREF(events);
    return wanted;
}

/* Appends (key, events) of a (descriptor, event) that is registered yet. */
static bool add_ready(const lc_epoll_select *select, PyObject *ready, PyObject *happened)
{
    if (!PyTuple_CheckExact(happened) || PyTuple_GET_SIZE(happened) != 2) {
        PyErr_SetString(PyExc_TypeError, "epoll answers with pairs");
        return false;
    }
    PyObject *descriptor = PyTuple_GET_ITEM(happened, 0), *event = PyTuple_GET_ITEM(happened, 1);
    PyObject *key = PyDict_GetItemWithError(select->fd_to_key, descriptor); /* borrowed */
    if (key == NULL) {
        return !PyErr_Occurred();
    }
    const long bits = PyLong_AsLong(event), wanted = wanted_events(key);
    if (PyErr_Occurred()) {
        return false;
    }
    const long events = ((bits & ~(long)EPOLLIN) ? EVENT_WRITE : 0) | ((bits & ~(long)EPOLLOUT) ? EVENT_READ : 0);
    PyObject *mask = PyLong_FromLong(events & wanted);
    PyObject *pair = mask == NULL ? NULL : PyTuple_Pack(2, key, mask);
    Py_XDECREF(mask);
    const bool added = pair != NULL && PyList_Append(ready, pair) == 0;
    Py_XDECREF(pair);
    return added;
}

PyObject *lc_epoll_select_call(const lc_epoll_select *select, PyObject *timeout)
{
    PyObject *happened = poll_epoll(select, timeout);
    if (happened == NULL && PyErr_ExceptionMatches(PyExc_InterruptedError)) {
        PyErr_Clear();
        return PyList_New(0);
    }
    if (happened == NULL || (PyList_CheckExact(happened) && PyList_GET_SIZE(happened) == 0)) {
        return happened;
    }
    PyObject *events = PySequence_Fast(happened, "epoll's events are no sequence");
    Py_DECREF(happened);
    PyObject *ready = events == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; ready != NULL && i < PySequence_Fast_GET_SIZE(events); i++) {
        if (!add_ready(select, ready, PySequence_Fast_GET_ITEM(events, i))) {
            Py_CLEAR(ready);
        }
    }
    Py_XDECREF(events);
    return ready;
}
