#include "probes/asyncio/turn_select.h"

#include "probes/hooks/bracket.h"
#include "probes/hooks/stand_in.h"
#include "probes/hooks/wait_hook.h"

/* TurnSelect(select, spins=None): calls `select`; the call's begin ends the thread's turn, its end begins the next.
 *
 * A loop that has work that is ready asks with a timeout of 0. `spins(turns)` hears of each SPINS_LOOK such turns
 * in a row, and, after that, once with 0 when the loop means to wait again. Nothing that it raises gets out. */
typedef struct {
    lc_stand_in stand_in;
    PyObject *select;
    PyObject *spins; /* or NULL */
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

static PyObject *call_select(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *select = ((turn_select *)callable)->select;
    turn_select *self = (turn_select *)callable;
    /* Before the lane is looked up: it runs Python, and the agent may stop meanwhile. */
    if (self->spins != NULL && count > 0 && !count_spins(self, is_zero(args[0]))) {
        return NULL;
    }
    lc_lane *lane = lc_thread_lane_get("asyncio");
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : PyObject_Vectorcall(select, args, count, names);
    }
    const uint64_t generation = lc_the_agent.generation;
    /* Only a loop calls its own selector: inside a callback, that is a loop inside the callback. */
    lc_bracket_interrupt(lane);
    const lc_wait outer = lc_wait_enter(lane);
    PyObject *result = PyObject_Vectorcall(select, args, count, names);
    lc_wait_leave(outer);
    if (LC_AGENT_RUNS(generation)) {
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    }
    return result;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *select, *spins = NULL;
    if (names != NULL && PyDict_GET_SIZE(names) != 0) {
        PyErr_SetString(PyExc_TypeError, "TurnSelect() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O|O", &select, &spins)) {
        return NULL;
    }
    turn_select *self = lc_stand_in_new(type, call_select, 2);
    if (self != NULL) {
        self->select = Py_NewRef(select);
        self->spins = lc_or_null(spins);
    }
    return (PyObject *)self;
}

static PyMemberDef members[] = {
    LC_STAND_IN_VECTORCALL,
    {"__wrapped__", T_OBJECT_EX, offsetof(turn_select, select), READONLY, "The select that is called."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "TurnSelect(select, spins=None)\n--\n\nCalls select between the end of a turn and the begin of the next."},
    {Py_tp_new, make},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, members},
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
