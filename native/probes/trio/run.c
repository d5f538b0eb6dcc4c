/* A run of trio's: its group of instruments (trio._core._instrumentation.Instruments) in C, which notes turns
 * and callbacks by itself.
 *
 * trio asks its group before each step of a task, and after it, whether any instrument wants to know, in
 * Python. An instrument of ours (trio.abc.Instrument) costs a tenth of an echo server's requests, for all
 * that trio does to call it. A group that answers, and is called, in C costs about what the plain one does.
 * Instruments of others are called as ever. A step ends when trio asks who wants to know of its end.
 *
 *     class Group(native.TrioGroup, Instruments): _call_others = Instruments.call
 *
 * All on the run's thread, under the GIL. Steps are callbacks. Turns are the hooked waits of the run's thread
 * (wait_hook.h) where trio's wait could be hooked, and before_io_wait and after_io_wait where it could not.
 * A guest run has no wait and no turn: its steps run inside a callback of the host's, which is judged up to
 * each. A group may be older than the engine, and outlive it.
 *
 * learn_trio(trio.lowlevel.Task) -> bool: whether tasks can be named. */
#include "module/bindings.h"

#include "probes/hooks/loop_hooks.h"
#include "cpython/objects/raised.h"
#include "probes/hooks/stand_in.h"
#include "probes/hooks/wait_hook.h"
#include "cpython/names/work.h"
#include "cpython/source/cpython_source.h"

typedef struct {
    lc_stand_in stand_in;
    PyObject *data;   /* of the group: which hooks instruments want; NULL: not yet asked for */
    PyObject *begins; /* called before the run, and raises nothing; or NULL */
    PyObject *spins;  /* as TurnSelect's (turn_select.c); or NULL */
    bool has_spun;
    char is_guest;
    char tells_waits;    /* the run's waits are not hooked */
    bool is_entered;     /* `outer` is known */
    uint64_t generation; /* of the agent whose lane the thread's waits are told to; 0: none yet */
    lc_loop_run run;
    lc_wait outer; /* whose waits the thread's were before */
    lc_bracket step;
    PyObject *task; /* of the step; trio holds it until it has asked who wants to know of the step's end */
} trio_group;

#define SPINS_LOOK 256u

static const char kind[] = "trio";

/* What trio tells, in its order. */
enum { BEFORE_TASK_STEP, AFTER_TASK_STEP, BEFORE_IO_WAIT, AFTER_IO_WAIT, BEFORE_RUN, AFTER_RUN, HOOKS };
static const char *const hook_names[HOOKS] = {"before_task_step", "after_task_step", "before_io_wait",
                                              "after_io_wait",    "before_run",      "after_run"};
/* Their names; interned, as trio's own are, and kept for ever: a group may outlive the module. */
static PyObject *hooks[HOOKS];
static PyObject *data_name, *call_others_name;

/* ---- what is told ------------------------------------------------------------------------ */

/* The thread's lane, and its waits told to it. NULL: nothing to tell. */
static lc_lane *own_lane(trio_group *self)
{
    lc_lane *lane = lc_thread_lane_get(kind);
    if (__builtin_expect(lane == NULL, 0)) {
        lc_raised_pass_on(); /* trio would take it for its own failure */
    } else if (__builtin_expect(self->generation != lc_the_agent.generation, 0)) {
        const lc_wait outer = lc_wait_enter(lane);
        if (!self->is_entered) {
            self->outer = outer;
            self->is_entered = true;
        }
        self->generation = lc_the_agent.generation;
    }
    return lane;
}

static void run_begins(trio_group *self)
{
    PyObject *begins = self->begins;
    self->begins = NULL;
    if (begins != NULL && !lc_call_ours(begins, (PyObject *)self)) {
        lc_raised_pass_on();
    }
    Py_XDECREF(begins);
    if (!self->is_guest) {
        self->run = lc_loop_run_begin(kind);
        (void)own_lane(self);
    }
}

static void run_ends(trio_group *self)
{
    if (self->is_guest) {
        return;
    }
    if (self->is_entered) {
        lc_wait_leave(self->outer);
        self->is_entered = false;
    }
    self->generation = 0;
    lc_loop_run_end(self->run);
    self->run = (lc_loop_run){0};
}

/* trio enters the task's context after it has told its instruments. */
static void note_scene_of(PyObject *task)
{
    PyObject *context = PyObject_GetAttrString(task, "context");
    if (context != NULL && PyContext_CheckExact(context) && PyContext_Enter(context) == 0) {
        lc_thread_lane_note_scene();
        (void)PyContext_Exit(context);
    }
    PyErr_Clear();
    Py_XDECREF(context);
}

static lc_lane *host_s_lane(void)
{
    lc_lane *lane = lc_thread_lane_get("thread"); /* the host loop may set the kind later */
    if (lane == NULL) {
        lc_raised_pass_on();
    } else if (lc_lane_in_callback(lane)) {
        (void)lc_callback_end(&lc_the_agent.watchdog.lanes, lane); /* its turn goes on */
    }
    return lane;
}

static void step_begins(trio_group *self, PyObject *task)
{
    lc_lane *lane = self->is_guest ? host_s_lane() : own_lane(self);
    self->task = task;
    self->step = lc_bracket_begin(lane, (uint64_t)(uintptr_t)task, 0);
    if (__builtin_expect(self->step.lane != NULL && lc_the_agent.scene_variable != NULL && task != NULL, 0)) {
        note_scene_of(task);
    }
}

static void step_ends(trio_group *self)
{
    const lc_bracket step = self->step;
    PyObject *task = self->task;
    self->task = NULL;
    self->step = (lc_bracket){0};
    if (__builtin_expect(LC_AGENT_RUNS(step.generation) && lc_bracket_is_tallied(step) && task != NULL, 0)) {
        lc_bracket_end_tallied(step, lc_work_kind_of(&lc_the_agent.source, task), 0);
    } else {
        lc_bracket_end(step);
    }
}

static void wait_begins(trio_group *self)
{
    lc_lane *lane = own_lane(self);
    if (lane != NULL) {
        lc_bracket_interrupt(lane);
    }
}

/* ---- what trio asks and calls ------------------------------------------------------------ */

static PyObject *own_data(trio_group *self)
{
    if (__builtin_expect(self->data == NULL, 0)) {
        self->data = PyObject_GetAttr((PyObject *)self, data_name);
    }
    return self->data;
}

static int is_wanted_by_others(trio_group *self, PyObject *name)
{
    PyObject *data = own_data(self);
    return data == NULL ? -1 : PySequence_Contains(data, name);
}

/* In the middle of a step trio itself asks only for the end of the step. Any other question is the
 * program's, and gets the answer that the plain group gives. */
static bool is_wanted_by_us(const trio_group *self, PyObject *name)
{
    if (self->step.lane != NULL) {
        return false;
    }
    if (name == hooks[BEFORE_TASK_STEP]) {
        return lc_the_agent.running;
    }
    if (name == hooks[BEFORE_IO_WAIT] || name == hooks[AFTER_IO_WAIT]) {
        return self->tells_waits;
    }
    return name == hooks[BEFORE_RUN] || name == hooks[AFTER_RUN];
}

/* trio asks once a turn, before it waits: of each SPINS_LOOK turns that began with tasks that were ready
 * is told, and once when it waits again. False with an exception set: the program's own came up meanwhile. */
static bool count_spins(trio_group *self)
{
    const uint32_t looks = lc_wait_looks();
    const bool tells = looks != 0 ? looks % SPINS_LOOK == 0 : self->has_spun;
    if (__builtin_expect(!tells || self->spins == NULL || self->is_guest, 1)) {
        return true;
    }
    self->has_spun = looks != 0;
    return lc_call_ours_with(self->spins, looks != 0 ? SPINS_LOOK : 0);
}

static int contains(PyObject *object, PyObject *name)
{
    trio_group *self = (trio_group *)object;
    if (name == hooks[BEFORE_IO_WAIT] && !count_spins(self)) {
        return -1;
    }
    if (name == hooks[AFTER_TASK_STEP]) {
        /* trio asks when a step is over, which is enough: to be called for it, too, would cost as much
         * again */
        step_ends(self);
        return is_wanted_by_others(self, name);
    }
    return is_wanted_by_us(self, name) ? 1 : is_wanted_by_others(self, name);
}

static void tell(trio_group *self, PyObject *name, PyObject *task)
{
    if (name == hooks[BEFORE_TASK_STEP]) {
        step_begins(self, task);
    } else if (name == hooks[BEFORE_RUN]) {
        run_begins(self);
    } else if (name == hooks[AFTER_RUN]) {
        run_ends(self);
    } else if (self->tells_waits && name == hooks[BEFORE_IO_WAIT]) {
        wait_begins(self);
    } else if (self->tells_waits && name == hooks[AFTER_IO_WAIT]) {
        lc_loop_wait_end();
    }
}

/* call(hookname, *args). Ours is the innermost bracket: what other instruments do is no part of the step
 * (contains). */
static PyObject *call(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    trio_group *self = (trio_group *)object;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "call() missing 1 required positional argument: 'hookname'");
        return NULL;
    }
    const int others = is_wanted_by_others(self, args[0]);
    if (__builtin_expect(others != 0, 0)) {
        PyObject *with_self[HOOKS] = {object};
        for (Py_ssize_t i = 0; i < count && i < HOOKS - 1; i++) {
            with_self[i + 1] = args[i];
        }
        PyObject *result = others < 0
                               ? NULL
                               : PyObject_VectorcallMethod(call_others_name, with_self,
                                                           (size_t)(count < HOOKS ? count + 1 : HOOKS), NULL);
        if (result == NULL) {
            return NULL;
        }
        Py_DECREF(result);
    }
    tell(self, args[0], count > 1 ? args[1] : NULL);
    Py_RETURN_NONE;
}

/* Opens the lane, and is the only place that lets the program's own exceptions pass. The lane's kind is not
 * known yet: the thread of a guest run belongs to its host's loop. */
static PyObject *open_lane(PyObject *object, PyObject *begins)
{
    trio_group *self = (trio_group *)object;
    Py_XSETREF(self->begins, Py_NewRef(begins));
    (void)lc_thread_lane_get("thread");
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyObject *lc_learn_trio(PyObject *Py_UNUSED(module), PyObject *task_type)
{
    return PyBool_FromLong(lc_the_agent.running &&
                           lc_cpython_source_learn_trio(&lc_the_agent.source, task_type));
}

static PyObject *make(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(names))
{
    return lc_stand_in_new(type, NULL, 3);
}

static PyMethodDef methods[] = {
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL, "call(hookname, *args): as trio's own."},
    {"open_lane", open_lane, METH_O,
     "open_lane(begins): the thread's lane; may start the engine. begins(self) is called before the run."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"is_guest", T_BOOL, offsetof(trio_group, is_guest), 0, "Whether another loop drives the run."},
    {"spins", T_OBJECT, offsetof(trio_group, spins), 0,
     "Hears of turns in a row that began with tasks that were ready."},
    {"tells_waits", T_BOOL, offsetof(trio_group, tells_waits), 0,
     "Whether turns are what trio says of its waits."},
    {NULL, 0, 0, 0, NULL},
};

LC_STAND_IN_SPEC(spec, "TrioGroup", trio_group, Py_TPFLAGS_BASETYPE,
                 {Py_tp_doc, "A base for groups of trio's instruments; see probes/trio/run.c."},
                 {Py_tp_new, make}, {Py_tp_methods, methods}, {Py_tp_members, members},
                 {Py_sq_contains, contains});

int lc_trio_run_add(PyObject *module)
{
    for (size_t i = 0; i < HOOKS; i++) {
        hooks[i] = PyUnicode_InternFromString(hook_names[i]);
    }
    data_name = PyUnicode_InternFromString("data");
    call_others_name = PyUnicode_InternFromString("_call_others");
    return !PyErr_Occurred() && lc_stand_in_add(module, &spec) != NULL ? 0 : -1;
}
