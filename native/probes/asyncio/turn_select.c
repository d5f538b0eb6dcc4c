#include "probes/asyncio/turn_select.h"

#include "core/start/start.h"
#include "probes/asyncio/epoll_select.h"
#include "probes/hooks/bracket.h"
#include "probes/hooks/stand_in.h"
#include "probes/hooks/wait_hook.h"

/* TurnSelect(selector, select, spins, is_epoll=False): calls `select`, or, of a selectors.EpollSelector, does what that does
 * (epoll_select.h); the call's begin ends the thread's turn, its end begins the next.
 *
 * It is to be an attribute of the selector: a method of that is called without owning the selector, or each loop would leave a
 * cycle for the garbage collector.
 *
 * A loop that has work that is ready asks with a timeout of 0. `spins(turns)` hears of each SPINS_LOOK such turns
 * in a row, and, after that, once with 0 when the loop means to wait again. Nothing that it raises gets out. */
typedef struct {
    lc_stand_in stand_in;
    PyObject *select;   /* of a method of the selector's, the function */
    PyObject *selector; /* weak reference to it, for such a method; else NULL */
    PyObject *spins;    /* NULL once the garbage collector has cleared it */
    lc_epoll_select epoll;
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

static PyObject *get_wrapped(PyObject *self, void *Py_UNUSED(closure)) { return select_of((turn_select *)self); }

/* `looks`: the timeout is 0. */
static PyObject *ask(const turn_select *self, PyObject *const *args, size_t count, PyObject *names, bool looks)
{
    if (PyVectorcall_NARGS(count) == 1 && names == NULL && lc_epoll_select_takes(&self->epoll, args[0], looks)) {
        return lc_epoll_select_call(&self->epoll, args[0]);
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
        (void)lc_epoll_select_open(selector, &self->epoll);
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

static PyType_Slot slots[] = {
    {Py_tp_doc, "TurnSelect(selector, select, spins, is_epoll=False)\n--\n\nCalls select between the end of a turn and the begin of the next."},
    {Py_tp_new, make},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    LC_STAND_IN_SLOTS,
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "loopcanary._native.TurnSelect",
    .basicsize = sizeof(turn_select),
    .flags = LC_STAND_IN_FLAGS | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = slots,
};

int lc_turn_select_add(PyObject *module) { return lc_stand_in_add(module, &spec) != NULL ? 0 : -1; }
