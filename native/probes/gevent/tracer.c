/* What a thread's greenlets do, reported at each switch between them: greenlet.settrace(GreenletTracer(...)).
 *
 * A greenlet that runs between two switches is a callback; the hub runs the loop. Turns are the hooked waits
 * of the hub's thread (wait_hook.h), or what prepare and check watchers of its loop say, where these cannot
 * be hooked. All on the tracer's thread, under the GIL. The tracer that was there before is called as ever. */
#include "module/bindings.h"

#include "probes/hooks/loop_hooks.h"
#include "cpython/objects/raised.h"
#include "probes/hooks/stand_in.h"
#include "probes/hooks/wait_hook.h"
#include "cpython/names/work.h"

/* GreenletTracer(hub_type, greenlet_type, previous): gevent's types, and what greenlet.gettrace() was. */
typedef struct {
    lc_stand_in stand_in;
    PyObject *hub_type;
    PyObject *greenlet_type;
    PyObject *previous;  /* or NULL */
    PyObject *work;      /* of the piece; kept: the watchdog reads its name */
    bool is_told;        /* between begin and end */
    bool is_entered;     /* `outer` is known */
    uint64_t generation; /* of the agent whose lane the thread's waits are told to; 0: none yet */
    lc_wait outer;       /* whose waits the thread's were before */
    lc_bracket piece;
} greenlet_tracer;

static const char kind[] = "gevent";
/* Interned, and kept for ever: a tracer may outlive the module. */
static PyObject *switch_name, *throw_name, *run_name, *parent_name;
static PyObject *main_greenlet, *other_greenlet; /* names of work */

/* The thread's lane, and its waits told to it. NULL: nothing to tell. */
static lc_lane *own_lane(greenlet_tracer *self)
{
    lc_lane *lane = lc_thread_lane_get(kind);
    if (lane != NULL && __builtin_expect(self->generation != lc_the_agent.generation, 0)) {
        const lc_wait outer = lc_wait_enter(lane);
        if (!self->is_entered) {
            self->outer = outer;
            self->is_entered = true;
        }
        self->generation = lc_the_agent.generation;
        lc_thread_lane_set_kind(lane, kind);
    }
    return lane;
}

/* What the greenlet runs: a callable that has a name, or a name. A new reference. */
static PyObject *work_of(const greenlet_tracer *self, PyObject *greenlet)
{
    PyObject *work = NULL;
    if (PyObject_TypeCheck(greenlet, (PyTypeObject *)self->greenlet_type)) {
        work = PyObject_GetAttr(greenlet, run_name);
    } else {
        PyObject *parent = PyObject_GetAttr(greenlet, parent_name);
        work = parent == Py_None ? Py_NewRef(main_greenlet) : NULL;
        Py_XDECREF(parent);
    }
    lc_raised_pass_on();
    return work != NULL ? work : Py_NewRef(other_greenlet);
}

static void end_piece(greenlet_tracer *self)
{
    const lc_bracket piece = self->piece;
    PyObject *work = self->work;
    self->piece = (lc_bracket){0};
    self->work = NULL;
    if (work != NULL && LC_AGENT_RUNS(piece.generation) &&
        __builtin_expect(lc_bracket_is_tallied(piece), 0)) {
        lc_bracket_end_tallied(piece, lc_work_kind_of(&lc_the_agent.source, work), 0);
    } else {
        lc_bracket_end(piece);
    }
    Py_XDECREF(work);
}

static void begin_piece(greenlet_tracer *self, PyObject *greenlet)
{
    /* may run Python, as may letting go of it: the engine may stop meanwhile */
    PyObject *work = work_of(self, greenlet);
    lc_lane *lane = own_lane(self);
    if (lane == NULL) {
        lc_raised_pass_on();
        Py_DECREF(work);
        return;
    }
    if (!lc_lane_in_turn(lane)) {
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane); /* it ends with the hub's next wait */
    }
    self->work = work;
    self->piece = lc_bracket_begin(lane, (uint64_t)(uintptr_t)self->work, 0);
    if (__builtin_expect(self->piece.lane != NULL && lc_the_agent.scene_variable != NULL, 0)) {
        lc_thread_lane_note_scene();
    }
}

static bool is_switch(PyObject *event)
{
    return event == switch_name || event == throw_name ||
           (PyUnicode_Check(event) && (PyUnicode_CompareWithASCIIString(event, "switch") == 0 ||
                                       PyUnicode_CompareWithASCIIString(event, "throw") == 0));
}

static PyObject *trace(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    greenlet_tracer *self = (greenlet_tracer *)callable;
    if (self->is_told && PyVectorcall_NARGS(count) == 2 && is_switch(args[0]) && PyTuple_Check(args[1]) &&
        PyTuple_GET_SIZE(args[1]) == 2) {
        PyObject *target = PyTuple_GET_ITEM(args[1], 1);
        end_piece(self);
        if (!PyObject_TypeCheck(target, (PyTypeObject *)self->hub_type)) {
            begin_piece(self, target);
        }
    }
    return self->previous == NULL ? Py_NewRef(Py_None)
                                  : PyObject_Vectorcall(self->previous, args, count, names);
}

/* The thread's hub begins to run: the first turn. */
static PyObject *begin(PyObject *object, PyObject *Py_UNUSED(unused))
{
    greenlet_tracer *self = (greenlet_tracer *)object;
    lc_lane *lane = own_lane(self);
    if (lane != NULL) {
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    } else if (PyErr_Occurred()) {
        return NULL;
    }
    self->is_told = true;
    Py_RETURN_NONE;
}

/* The thread's hub is gone, or the thread ends. Also on a thread that has another lane by now. */
static PyObject *end(PyObject *object, PyObject *Py_UNUSED(unused))
{
    greenlet_tracer *self = (greenlet_tracer *)object;
    if (!self->is_told) {
        Py_RETURN_NONE;
    }
    self->is_told = false;
    end_piece(self);
    if (self->is_entered) {
        lc_wait_leave(self->outer);
        self->is_entered = false;
        self->generation = 0;
    }
    lc_lane *lane = lc_thread_lane_peek();
    if (lane != NULL) {
        lc_bracket_interrupt(lane);
    }
    Py_RETURN_NONE;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"hub_type", "greenlet_type", "previous", NULL};
    PyObject *hub_type, *greenlet_type, *previous;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O!O!O", keywords, &PyType_Type, &hub_type, &PyType_Type,
                                     &greenlet_type, &previous)) {
        return NULL;
    }
    greenlet_tracer *self = lc_stand_in_new(type, trace, 4);
    if (self != NULL) {
        self->hub_type = Py_NewRef(hub_type);
        self->greenlet_type = Py_NewRef(greenlet_type);
        self->previous = lc_or_null(previous);
    }
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"begin", begin, METH_NOARGS, "begin(): the thread's greenlets and waits are told from now on."},
    {"end", end, METH_NOARGS, "end(): nothing is told any more. Idempotent."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    LC_STAND_IN_VECTORCALL,
    {"previous", T_OBJECT, offsetof(greenlet_tracer, previous), READONLY,
     "The tracer that was there before, or None."},
    {NULL, 0, 0, 0, NULL},
};

LC_STAND_IN_SPEC(spec, "GreenletTracer", greenlet_tracer, Py_TPFLAGS_HAVE_VECTORCALL,
                 {Py_tp_doc,
                  "GreenletTracer(hub_type, greenlet_type, previous)\n--\n\nFor greenlet.settrace; see "
                  "probes/gevent/tracer.c."},
                 {Py_tp_new, make}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_methods, methods},
                 {Py_tp_members, members});

int lc_gevent_tracer_add(PyObject *module)
{
    switch_name = PyUnicode_InternFromString("switch");
    throw_name = PyUnicode_InternFromString("throw");
    run_name = PyUnicode_InternFromString("_run");
    parent_name = PyUnicode_InternFromString("parent");
    main_greenlet = PyUnicode_InternFromString("main greenlet");
    other_greenlet = PyUnicode_InternFromString("greenlet");
    return !PyErr_Occurred() && lc_stand_in_add(module, &spec) != NULL ? 0 : -1;
}
