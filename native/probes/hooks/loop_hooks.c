#include "probes/hooks/loop_hooks.h"

#include "cpython/names/work.h"
#include "cpython/objects/raised.h"
#include "probes/hooks/stand_in.h"

/* LoopHooks(kind, loop_seen=None): `loop_seen` is called at each run's begin, and raises nothing. */
typedef struct {
    lc_stand_in stand_in;
    PyObject *kind;
    PyObject *loop_seen;   /* or NULL */
    const char *kind_text; /* of `kind`, which keeps it */
} loop_hooks;

#define NESTED_RUNS_MAX 16u
#define NESTED_WORKS_MAX 64u

typedef struct {
    lc_bracket bracket;
    PyObject *work; /* kept: the watchdog reads its name */
} begun_work;

typedef struct {
    lc_loop_run run;
    uint32_t in_work; /* the depth of the work that it interrupts; 0: none */
} begun_run;

/* What a thread has begun, innermost last; deeper ones are counted, and not bracketed. */
typedef struct {
    uint32_t run_depth;
    uint32_t work_depth;
    uint32_t outside; /* so many works were begun before the innermost lc_works_enter */
    begun_run runs[NESTED_RUNS_MAX];
    begun_work works[NESTED_WORKS_MAX];
} begun;

static _Thread_local begun *own_begun;
static pthread_key_t begun_key; /* made with the type */

/* Other destructors of the thread may yet run Python. */
static void free_begun(void *memory)
{
    own_begun = NULL;
    free(memory);
}

static begun *get_begun(void)
{
    if (__builtin_expect(own_begun == NULL, 0)) {
        own_begun = lc_thread_memory(begun_key, sizeof *own_begun);
    }
    return own_begun;
}

/* What is raised is the program's own, which came up meanwhile. */
static PyObject *none_unless_raised(void) { return PyErr_Occurred() ? NULL : Py_NewRef(Py_None); }

/* The innermost work, where it is the callback that is judged. */
static uint32_t open_work(const begun *own)
{
    if (own->work_depth == 0 || own->work_depth > NESTED_WORKS_MAX) {
        return 0;
    }
    const lc_bracket *bracket = &own->works[own->work_depth - 1u].bracket;
    const bool is_open = bracket->lane != NULL && LC_AGENT_RUNS(bracket->generation) &&
                         lc_lane_in_callback(bracket->lane) &&
                         LC_LOAD(bracket->lane->epoch) == bracket->epoch;
    return is_open ? own->work_depth : 0;
}

/* The rest of a work that a loop has interrupted is judged by itself, under the same name. */
static void go_on(begun *own, uint32_t depth)
{
    if (depth == 0 || depth != own->work_depth) {
        return;
    }
    begun_work *work = &own->works[depth - 1u];
    lc_lane *lane = work->bracket.lane;
    if (LC_AGENT_RUNS(work->bracket.generation) && lc_lane_in_turn(lane) && !lc_lane_in_callback(lane)) {
        lc_callback_begin(lane, (uint64_t)(uintptr_t)work->work, 0);
        work->bracket.epoch = LC_LOAD(lane->epoch);
    }
}

static PyObject *run_begin(PyObject *self, PyObject *const *Py_UNUSED(unused), Py_ssize_t Py_UNUSED(count))
{
    loop_hooks *hooks = (loop_hooks *)self;
    if (hooks->loop_seen != NULL && !lc_call_ours(hooks->loop_seen, NULL)) {
        return NULL;
    }
    begun *own = get_begun();
    bool in_turn = false;
    if (own != NULL && own->run_depth++ < NESTED_RUNS_MAX) {
        const uint32_t in_work = open_work(own);
        const lc_loop_run run = lc_loop_run_begin(hooks->kind_text);
        own->runs[own->run_depth - 1u] = (begun_run){run, in_work};
        in_turn = run.was_in_turn;
    }
    return PyErr_Occurred() ? NULL : PyBool_FromLong(in_turn);
}

static PyObject *run_end(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(unused),
                         Py_ssize_t Py_UNUSED(count))
{
    begun *own = own_begun;
    if (own == NULL || own->run_depth == 0) {
        lc_loop_run_end((lc_loop_run){0}); /* it began before the engine did */
    } else if (--own->run_depth < NESTED_RUNS_MAX) {
        const begun_run ended = own->runs[own->run_depth];
        lc_loop_run_end(ended.run);
        go_on(own, ended.in_work);
    }
    Py_RETURN_NONE;
}

static PyObject *wait_begin(PyObject *self, PyObject *const *Py_UNUSED(unused), Py_ssize_t Py_UNUSED(count))
{
    lc_loop_wait_begin(((loop_hooks *)self)->kind_text);
    return none_unless_raised();
}

static PyObject *wait_end(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(unused),
                          Py_ssize_t Py_UNUSED(count))
{
    lc_loop_wait_end();
    Py_RETURN_NONE;
}

static PyObject *in_turn(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(unused),
                         Py_ssize_t Py_UNUSED(count))
{
    const lc_lane *lane = lc_thread_lane_peek();
    return PyBool_FromLong(lane != NULL && lc_lane_in_turn(lane));
}

const char *lc_loop_hooks_kind(PyObject *hooks) { return ((loop_hooks *)hooks)->kind_text; }

bool lc_work_begin(const char *kind, PyObject *work)
{
    lc_lane *lane = lc_thread_lane_get(kind);
    if (lane == NULL && PyErr_Occurred()) {
        return false;
    }
    begun *own = get_begun();
    if (own != NULL && own->work_depth++ < NESTED_WORKS_MAX) {
        const lc_bracket bracket = lc_bracket_begin(lane, (uint64_t)(uintptr_t)work, 0);
        own->works[own->work_depth - 1u] = (begun_work){bracket, Py_XNewRef(work)};
        if (bracket.lane != NULL && lc_the_agent.scene_variable != NULL) {
            lc_thread_lane_note_scene();
        }
    }
    return true;
}

void lc_work_end(void)
{
    begun *own = own_begun;
    if (own == NULL || own->work_depth == 0 || --own->work_depth >= NESTED_WORKS_MAX) {
        return;
    }
    const begun_work ended = own->works[own->work_depth];
    own->works[own->work_depth] = (begun_work){0};
    if (__builtin_expect(LC_AGENT_RUNS(ended.bracket.generation) && lc_bracket_is_tallied(ended.bracket),
                         0) &&
        LC_LOAD(ended.bracket.lane->epoch) == ended.bracket.epoch) {
        lc_bracket_end_tallied(ended.bracket, lc_work_kind_of(&lc_the_agent.source, ended.work), 0);
    } else {
        lc_bracket_end_late(ended.bracket);
    }
    Py_XDECREF(ended.work);
}

uint32_t lc_works_enter(void)
{
    begun *own = get_begun();
    const uint32_t outer = own != NULL ? own->outside : 0;
    if (own != NULL) {
        own->outside = own->work_depth;
    }
    return outer;
}

void lc_works_end(void)
{
    if (own_begun != NULL && own_begun->work_depth > own_begun->outside) {
        const lc_raised before = lc_raised_take(); /* letting go of works may run Python */
        while (own_begun != NULL && own_begun->work_depth > own_begun->outside) {
            lc_work_end();
        }
        lc_raised_put_back(before);
    }
}

void lc_works_leave(uint32_t outer)
{
    lc_works_end();
    if (own_begun != NULL) {
        own_begun->outside = outer;
    }
}

static PyObject *work_begin(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (!lc_work_begin(lc_loop_hooks_kind(self), count > 0 ? args[0] : NULL)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *work_end(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(unused),
                          Py_ssize_t Py_UNUSED(count))
{
    lc_work_end();
    Py_RETURN_NONE;
}

static PyObject *works_end(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(unused),
                           Py_ssize_t Py_UNUSED(count))
{
    lc_works_end();
    Py_RETURN_NONE;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"kind", "loop_seen", NULL};
    PyObject *kind, *loop_seen = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, names, "U|O", keywords, &kind, &loop_seen)) {
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8(kind);
    loop_hooks *self = text != NULL ? lc_stand_in_new(type, NULL, 2) : NULL;
    if (self != NULL) {
        self->kind = Py_NewRef(kind);
        self->kind_text = text;
        self->loop_seen = lc_or_null(loop_seen);
    }
    return (PyObject *)self;
}

#define HOOK(name, text) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, text}

static PyMethodDef methods[] = {
    HOOK(run_begin, "run_begin(*ignored) -> bool: the loop begins to run on this thread; True: in a turn of "
                    "another one."),
    HOOK(run_end, "run_end(*ignored): the loop runs no more."),
    HOOK(wait_begin, "wait_begin(*ignored): the loop is about to wait."),
    HOOK(wait_end, "wait_end(*ignored): the loop's wait is over."),
    HOOK(in_turn, "in_turn(*ignored) -> bool: the calling thread is in a turn of a loop."),
    HOOK(work_begin, "work_begin(work, *ignored): a callback begins; `work` names it."),
    HOOK(work_end, "work_end(*ignored): the callback ends."),
    HOOK(works_end,
         "works_end(*ignored): all end that were begun in the innermost function of around_works."),
    {"around_wait", lc_around_wait, METH_O, "around_wait(function): see probes/hooks/loop_hooks.h."},
    {"around_works", lc_around_works, METH_O, "around_works(function): see probes/hooks/loop_hooks.h."},
    {"around_work", lc_around_work, METH_VARARGS,
     "around_work(function, attribute, name_of): see probes/hooks/loop_hooks.h."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"kind", T_OBJECT_EX, offsetof(loop_hooks, kind), READONLY, "What reports call the loop."},
    {NULL, 0, 0, 0, NULL},
};

LC_STAND_IN_SPEC(
    spec, "LoopHooks", loop_hooks, 0,
    {Py_tp_doc,
     "LoopHooks(kind, loop_seen=None)\n--\n\nBrackets for a loop that has hooks; see loop_hooks.h."},
    {Py_tp_new, make}, {Py_tp_methods, methods}, {Py_tp_members, members});

int lc_loop_hooks_add(PyObject *module)
{
    static bool has_key;
    if (!has_key && pthread_key_create(&begun_key, free_begun) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "no thread-specific memory is left (pthread_key_create)");
        return -1;
    }
    has_key = true;
    return lc_stand_in_add(module, &spec) != NULL ? 0 : -1;
}
