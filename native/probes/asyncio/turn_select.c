#include <Python.h>
#include <math.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "core/start/start.h"
#include "probes/asyncio/asyncio.h"
#include "module/bracket.h"
#include "probes/hooks/stand_in.h"
#include "probes/hooks/wait_hook.h"

/* ---- selectors.EpollSelector.select ------------------------------------------------------------------
 *
 * What it does (CPython Lib/selectors.py, the same from 3.11 to 3.15), without a frame of Python's: a turn of
 * an asyncio loop then costs less than it does in a program that is not watched. */

/* selectors.py */
enum { EVENT_READ = 1, EVENT_WRITE = 2, KEY_FIELDS = 4, KEY_EVENTS = 2 };

#define LONGEST_S 1e9 /* asyncio waits for a day at most; beyond, math.ceil may have something to say */

/* What the selector keeps for its life; new references. */
typedef struct {
    PyObject *poll;      /* of its select.epoll, bound; NULL: this is no such selector */
    PyObject *fd_to_key; /* dict: descriptor -> SelectorKey */
} epoll_select;

/* `selector` is a selectors.EpollSelector. False without an exception where it is not made as these are. */
static bool open_epoll(PyObject *selector, epoll_select *out)
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

/* Whether call_epoll knows what this argument means. `is_zero`: it is the int 0. */
static bool takes_epoll(const epoll_select *select, PyObject *timeout, bool is_zero)
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
static PyObject *poll_epoll(const epoll_select *select, PyObject *timeout)
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
static bool add_ready(const epoll_select *select, PyObject *ready, PyObject *happened)
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
    const long events =
        ((bits & ~(long)EPOLLIN) ? EVENT_WRITE : 0) | ((bits & ~(long)EPOLLOUT) ? EVENT_READ : 0);
    PyObject *mask = PyLong_FromLong(events & wanted);
    PyObject *pair = mask == NULL ? NULL : PyTuple_Pack(2, key, mask);
    Py_XDECREF(mask);
    const bool added = pair != NULL && PyList_Append(ready, pair) == 0;
    Py_XDECREF(pair);
    return added;
}

/* selector.select(timeout): a new list, NULL with an exception. */
static PyObject *call_epoll(const epoll_select *select, PyObject *timeout)
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

/* TurnSelect(selector, select, spins, is_epoll=False): calls `select`, or, of a selectors.EpollSelector, does
 * what that does; the call's begin ends the thread's turn, its end begins the next.
 *
 * It is to be an attribute of the selector: a method of that is called without owning the selector, or each
 * loop would leave a cycle for the garbage collector.
 *
 * A loop that has work that is ready asks with a timeout of 0. `spins(turns)` hears of each SPINS_LOOK
 * such turns in a row, and, after that, once with 0 when the loop means to wait again. Nothing that it
 * raises gets out. */
typedef struct {
    lc_stand_in stand_in;
    PyObject *select;   /* of a method of the selector's, the function */
    PyObject *selector; /* weak reference to it, for such a method; else NULL */
    PyObject *spins;    /* NULL once the garbage collector has cleared it */
    epoll_select epoll;
    uint32_t in_a_row;
} turn_select;

#define SPINS_LOOK 256u

static bool is_zero(PyObject *timeout) { return PyLong_CheckExact(timeout) && !PyObject_IsTrue(timeout); }

/* False with an exception set: the program's own came up meanwhile. */
static bool count_spins(turn_select *self, bool spins)
{
    uint32_t told = self->in_a_row;
    if (spins) {
        if (++self->in_a_row % SPINS_LOOK != 0) {
            return true;
        }
        told = SPINS_LOOK;
    } else {
        self->in_a_row = 0;
        if (told < SPINS_LOOK) {
            return true;
        }
        told = 0;
    }
    return lc_call_ours_with(self->spins, told);
}

/* What is called, a new reference. NULL with an exception: the selector is gone. */
static PyObject *select_of(const turn_select *self)
{
    if (self->selector == NULL) {
        return Py_NewRef(self->select);
    }
    PyObject *selector = PyObject_CallNoArgs(self->selector);
    if (selector == Py_None) {
        Py_SETREF(selector, NULL);
        PyErr_SetString(PyExc_ReferenceError, "the selector is gone");
    }
    PyObject *method = selector == NULL ? NULL : PyMethod_New(self->select, selector);
    Py_XDECREF(selector);
    return method;
}

static PyObject *get_wrapped(PyObject *self, void *Py_UNUSED(closure))
{
    return select_of((turn_select *)self);
}

static PyObject *ask(const turn_select *self, PyObject *const *args, size_t count, PyObject *names,
                     bool looks)
{
    if (PyVectorcall_NARGS(count) == 1 && names == NULL && takes_epoll(&self->epoll, args[0], looks)) {
        return call_epoll(&self->epoll, args[0]);
    }
    PyObject *select = select_of(self);
    PyObject *result = select == NULL ? NULL : PyObject_Vectorcall(select, args, count, names);
    Py_XDECREF(select);
    return result;
}

static PyObject *call_select(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    turn_select *self = (turn_select *)callable;
    const bool looks = count > 0 && is_zero(args[0]);
    /* Before the lane is looked up: it runs Python, and the agent may stop meanwhile. */
    if (self->spins != NULL && count > 0 && !count_spins(self, looks)) {
        return NULL;
    }
    lc_lane *lane = lc_thread_lane_get("asyncio");
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : ask(self, args, count, names, looks);
    }
    const uint64_t generation = lc_the_agent.generation;
    /* Only a loop calls its own selector: inside a callback, that is a loop inside the callback. */
    lc_bracket_interrupt(lane);
    if (count > 0 && !looks) {
        lc_start_waits();
    }
    const lc_wait outer = lc_wait_enter(lane);
    PyObject *result = ask(self, args, count, names, looks);
    lc_wait_leave(outer);
    if (LC_AGENT_RUNS(generation)) {
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    }
    return result;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *selector, *select, *spins;
    int is_epoll = 0;
    if (names != NULL && PyDict_GET_SIZE(names) != 0) {
        PyErr_SetString(PyExc_TypeError, "TurnSelect() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OOO|p", &selector, &select, &spins, &is_epoll)) {
        return NULL;
    }
    const bool is_method = PyMethod_Check(select) && PyMethod_GET_SELF(select) == selector;
    PyObject *weak = is_method ? PyWeakref_NewRef(selector, NULL) : NULL;
    turn_select *self = is_method && weak == NULL ? NULL : lc_stand_in_new(type, call_select, 5);
    if (self == NULL) {
        Py_XDECREF(weak);
        return NULL;
    }
    self->select = Py_NewRef(is_method ? PyMethod_GET_FUNCTION(select) : select);
    self->selector = weak;
    self->spins = Py_NewRef(spins);
    if (is_epoll && is_method) {
        (void)open_epoll(selector, &self->epoll);
    }
    return (PyObject *)self;
}

static PyMemberDef members[] = {
    LC_STAND_IN_VECTORCALL,
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"__wrapped__", get_wrapped, NULL, "The select that is called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

LC_STAND_IN_SPEC(
    spec, "TurnSelect", turn_select, Py_TPFLAGS_HAVE_VECTORCALL,
    {Py_tp_doc, "TurnSelect(selector, select, spins, is_epoll=False)\n--\n\nCalls select between the end of "
                "a turn and the begin of the next."},
    {Py_tp_new, make}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_members, members}, {Py_tp_getset, properties});

int lc_turn_select_add(PyObject *module) { return lc_stand_in_add(module, &spec) != NULL ? 0 : -1; }
