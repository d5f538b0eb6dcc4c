#include "game_calls.h"

#include <stddef.h>
#include <string.h>

#include "loop_hooks.h"
#include "patched_function.h"

#define SCREEN_LOOK_NS UINT64_C(1000000000)
#define SLEPT_NS UINT64_C(1000000)  /* an "await" that took longer has slept: the event came at its end */
#define TICKS_WITHOUT_FRAME 3u      /* so many ticks in a row, and no frame shown: the game is paused */
#define INPUT_TYPES_MAX 32u
#define TICK_ARGUMENTS_MAX 8u       /* a call with more goes through as it is */

typedef struct {
    PyObject_HEAD
    PyObject *hooks;
    PyObject *work;
    PyObject *beat;   /* or NULL */
    PyObject *shown;  /* or NULL */
    PyObject *target; /* what the game aims at; NULL: nothing yet, which is 0 */
    unsigned long thread; /* the watched one; 0: none */
    unsigned long left;   /* one that is watched no more, and whose work has to be ended by itself; 0: none */
    uint64_t looked_ns;   /* when the game last looked for events */
    uint64_t screen_ns;   /* when the beat last looked at the screen */
    uint32_t ticks;       /* since the last frame */
    bool is_pending;      /* the beat holds input that is being handled */
    uint32_t input_count;
    long input[INPUT_TYPES_MAX];
} game_calls;

static PyObject *real_name, *type_name, *framerate_name;
static PyObject *began_name, *aims_at_name, *look_at_screen_name, *paused_name, *waited_name, *modal_over_name, *looked_name,
    *handled_name;

/* NULL: of a stand-in that the collector has taken apart, and that a finalizer still calls. Also with an exception set. */
static bool is_watched(game_calls *self)
{
    if (self == NULL) {
        return false;
    }
    const unsigned long own = PyThread_get_thread_ident();
    if (__builtin_expect(self->left == own, 0)) { /* another thread has called over() */
        self->left = 0;
        lc_loop_hooks_work_end();
        lc_loop_hooks_run_end();
    }
    return self->thread == own;
}

/* ---- telling ------------------------------------------------------------------------------ */

/* What a function of ours has answered, taken. 1: something true, 0: anything else, also an Exception of ours, -1: an
 * exception is set that is not ours to stop. */
static int answer(PyObject *result)
{
    const int truth = result != NULL ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    if (truth < 0 && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyErr_Clear();
    return truth > 0;
}

static int tell(const game_calls *self, PyObject *name, PyObject *argument)
{
    if (self->beat == NULL) {
        return 0;
    }
    PyObject *beat = Py_NewRef(self->beat);
    PyObject *result = argument != NULL ? PyObject_CallMethodOneArg(beat, name, argument)
                                        : PyObject_CallMethodNoArgs(beat, name);
    Py_DECREF(beat);
    return answer(result);
}

static int tell_time(const game_calls *self, PyObject *name, uint64_t now_ns)
{
    PyObject *number = PyLong_FromUnsignedLongLong(now_ns);
    const int told = number != NULL ? tell(self, name, number) : answer(NULL);
    Py_XDECREF(number);
    return told;
}

static bool tell_handled(game_calls *self, uint64_t now_ns)
{
    self->is_pending = false;
    return tell_time(self, handled_name, now_ns) >= 0;
}

static bool tell_shown(const game_calls *self, uint64_t now_ns)
{
    PyObject *shown = Py_NewRef(self->shown);
    PyObject *number = PyLong_FromUnsignedLongLong(now_ns);
    const int told = answer(number != NULL ? PyObject_CallOneArg(shown, number) : NULL);
    Py_XDECREF(number);
    Py_DECREF(shown);
    return told >= 0;
}

/* ---- the bracket -------------------------------------------------------------------------- */

/* The program's own exception, out of the way while ours runs. */
typedef struct {
    PyObject *type, *value, *traceback;
} held_error;

static held_error hold_error(void)
{
    held_error held;
    PyErr_Fetch(&held.type, &held.value, &held.traceback);
    return held;
}

/* Back again; where another one came up that is not ours to stop, that one goes on, as out of a `finally`. */
static void release_error(held_error held, bool is_replaced)
{
    if (!is_replaced) {
        PyErr_Restore(held.type, held.value, held.traceback);
        return;
    }
    Py_XDECREF(held.type);
    Py_XDECREF(held.value);
    Py_XDECREF(held.traceback);
}

/* What follows a call of the library's, whether it raised or not: `rest(self)` answers whether nothing is set that is not
 * ours to stop. Takes the result, and gives it. */
static PyObject *after_call(game_calls *self, PyObject *result, bool (*rest)(game_calls *))
{
    if (__builtin_expect(result != NULL, 1)) {
        if (!rest(self)) {
            Py_CLEAR(result);
        }
        return result;
    }
    const held_error held = hold_error();
    release_error(held, !rest(self));
    return NULL;
}

static bool work_on(game_calls *self)
{
    if (__builtin_expect(!is_watched(self), 0)) { /* over() came meanwhile */
        return true;
    }
    lc_loop_wait_end();
    return lc_loop_hooks_work_begin(self->hooks, self->work);
}

/* Calls it as a wait. */
static PyObject *wait_in(game_calls *self, PyObject *function, PyObject *const *args, size_t count, PyObject *names)
{
    lc_loop_hooks_work_end();
    if (!lc_loop_hooks_wait_begin(self->hooks)) {
        return NULL;
    }
    return after_call(self, PyObject_Vectorcall(function, args, count, names), work_on);
}

/* ---- input -------------------------------------------------------------------------------- */

/* 1 it is, 0 it is not, -1: an exception is set that is not ours to stop. */
static int is_input(const game_calls *self, PyObject *event)
{
    PyObject *number = PyObject_GetAttr(event, type_name);
    if (number == NULL || !PyLong_Check(number)) {
        const int told = number == NULL ? answer(NULL) : 0;
        Py_XDECREF(number);
        return told;
    }
    int overflow = 0;
    const long type = PyLong_AsLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    for (uint32_t i = 0; i < self->input_count; i++) {
        if (self->input[i] == type && !overflow) {
            return 1;
        }
    }
    return 0;
}

/* Whether there is input among what was found: an event or a list of them. */
static int has_input(const game_calls *self, PyObject *found)
{
    if (!PyList_Check(found)) {
        return is_input(self, found);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++) {
        PyObject *event = Py_NewRef(PyList_GET_ITEM(found, i));
        const int told = is_input(self, event);
        Py_DECREF(event);
        if (told != 0) {
            return told;
        }
    }
    return 0;
}

static bool tell_looked(game_calls *self, PyObject *found, uint64_t begin_ns, uint64_t since_ns, uint64_t now_ns)
{
    PyObject *beat = Py_XNewRef(self->beat);
    PyObject *times[] = {beat, found, PyLong_FromUnsignedLongLong(begin_ns), PyLong_FromUnsignedLongLong(since_ns),
                         PyLong_FromUnsignedLongLong(now_ns)};
    const size_t count = sizeof times / sizeof *times;
    PyObject *result = beat != NULL && times[2] != NULL && times[3] != NULL && times[4] != NULL
                           ? PyObject_VectorcallMethod(looked_name, times, count, NULL)
                           : NULL;
    for (size_t i = 2; i < count; i++) {
        Py_XDECREF(times[i]);
    }
    const int told = beat != NULL ? answer(result) : 0;
    Py_XDECREF(beat);
    self->is_pending |= told > 0;
    return told >= 0;
}

/* Events were taken from the queue. They came at `since_ns`, or later. */
static bool note_events(game_calls *self, PyObject *found, uint64_t begin_ns, uint64_t since_ns)
{
    const uint64_t now_ns = self->looked_ns = lc_now_ns();
    if (found == Py_None || self->input_count == 0) {
        return true;
    }
    const int told = has_input(self, found);
    return told > 0 ? tell_looked(self, found, begin_ns, since_ns, now_ns) : told == 0;
}

static bool is_something(PyObject *found)
{
    if (PyList_CheckExact(found)) {
        return PyList_GET_SIZE(found) > 0;
    }
    const int truth = found != Py_None ? PyObject_IsTrue(found) : 0;
    if (truth < 0) {
        PyErr_Clear(); /* nobody but us has asked */
    }
    return truth > 0;
}

/* ---- the calls ---------------------------------------------------------------------------- */

static void stop_telling(game_calls *self)
{
    self->thread = 0;
    self->is_pending = false;
    self->input_count = 0;
    Py_CLEAR(self->shown);
}

/* What dies with the thread's state, under the GIL: a game may end without a word, and its thread's number be given out
 * anew. It keeps the calls until then. */
static const char tie_name[] = "loopcanary.game";

static void untie(PyObject *tie)
{
    game_calls *self = PyCapsule_GetPointer(tie, tie_name);
    if (self == NULL) {
        PyErr_Clear();
        return;
    }
    const unsigned long own = PyThread_get_thread_ident();
    if (self->left == own) {
        self->left = 0;
    }
    if (self->thread == own) {
        stop_telling(self);
    }
    Py_DECREF(self);
}

/* Without memory the thread keeps its place, as it does until over(). */
static void tie_to_thread(game_calls *self)
{
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    PyObject *key = dict != NULL ? PyUnicode_FromFormat("%s.%p", tie_name, self) : NULL;
    PyObject *tie = key != NULL ? PyCapsule_New(self, tie_name, untie) : NULL;
    if (tie != NULL) {
        Py_INCREF(self);
        (void)PyDict_SetItem(dict, key, tie);
    }
    Py_XDECREF(tie);
    Py_XDECREF(key);
    PyErr_Clear();
}

/* The first frame: from here on this thread is watched. 0: another one is already, -1: an exception is set. */
static int begin(game_calls *self)
{
    if (self == NULL || self->thread != 0) {
        return 0;
    }
    tie_to_thread(self);
    self->thread = PyThread_get_thread_ident();
    if (!lc_loop_hooks_run_begin(self->hooks)) {
        return -1;
    }
    self->looked_ns = lc_now_ns();
    return tell(self, began_name, NULL) < 0 ? -1 : 1;
}

static bool frame_over(game_calls *self, uint64_t now_ns)
{
    self->ticks = 0;
    if (self->shown != NULL) {
        if (!tell_shown(self, now_ns)) {
            return false;
        }
        if (now_ns - self->screen_ns > SCREEN_LOOK_NS) {
            self->screen_ns = now_ns;
            if (tell(self, look_at_screen_name, NULL) < 0) {
                return false;
            }
        }
    }
    return !self->is_pending || tell_handled(self, now_ns);
}

static PyObject *flip(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    game_calls *self = (game_calls *)patch->extra;
    if (!is_watched(self)) {
        const int begun = begin(self);
        if (begun <= 0) {
            return begun < 0 ? NULL : lc_patched_call_original(patch, args, count, names);
        }
    }
    PyObject *result = wait_in(self, patch->original, args, count, names);
    if (result != NULL && !frame_over(self, lc_now_ns())) {
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *wait_for(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    game_calls *self = (game_calls *)patch->extra;
    return is_watched(self) ? wait_in(self, patch->original, args, count, names)
                            : lc_patched_call_original(patch, args, count, names);
}

static bool modal_over(game_calls *self) { return tell(self, modal_over_name, NULL) >= 0; }

static PyObject *modal(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    game_calls *self = (game_calls *)patch->extra;
    if (!is_watched(self)) {
        return lc_patched_call_original(patch, args, count, names);
    }
    return after_call(self, wait_in(self, patch->original, args, count, names), modal_over);
}

static PyObject *look(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    game_calls *self = (game_calls *)patch->extra;
    if (!is_watched(self)) {
        return lc_patched_call_original(patch, args, count, names);
    }
    const uint64_t begin_ns = lc_now_ns();
    if (self->is_pending && !tell_handled(self, begin_ns)) {
        return NULL;
    }
    PyObject *found = wait_in(self, patch->original, args, count, names);
    if (found == NULL) {
        return NULL;
    }
    if (!is_something(found)) {
        self->looked_ns = begin_ns;
    } else if (!note_events(self, found, begin_ns, self->looked_ns)) {
        Py_CLEAR(found);
    }
    return found;
}

static bool tell_waited(const game_calls *self, uint64_t begin_ns, uint64_t end_ns)
{
    PyObject *beat = Py_XNewRef(self->beat);
    if (beat == NULL) {
        return true;
    }
    PyObject *times[] = {beat, PyLong_FromUnsignedLongLong(begin_ns), PyLong_FromUnsignedLongLong(end_ns)};
    PyObject *result =
        times[1] != NULL && times[2] != NULL ? PyObject_VectorcallMethod(waited_name, times, 3, NULL) : NULL;
    Py_XDECREF(times[1]);
    Py_XDECREF(times[2]);
    Py_DECREF(beat);
    return answer(result) >= 0;
}

static PyObject *await_event(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    game_calls *self = (game_calls *)patch->extra;
    if (!is_watched(self)) {
        return lc_patched_call_original(patch, args, count, names);
    }
    const uint64_t begin_ns = lc_now_ns();
    if (self->is_pending && !tell_handled(self, begin_ns)) {
        return NULL;
    }
    PyObject *found = wait_in(self, patch->original, args, count, names);
    if (found == NULL) {
        return NULL;
    }
    const uint64_t now_ns = lc_now_ns();
    const uint64_t since_ns = now_ns - begin_ns > SLEPT_NS ? now_ns : self->looked_ns;
    if (!tell_waited(self, begin_ns, now_ns) || !note_events(self, found, begin_ns, since_ns)) {
        Py_CLEAR(found);
    }
    return found;
}

/* ---- Clock.tick --------------------------------------------------------------------------- */

/* Borrowed; NULL: none was given. */
static PyObject *framerate_of(PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    if (count > 1) {
        return args[1];
    }
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names, i), framerate_name) == 0) {
            return args[count + i];
        }
    }
    return NULL;
}

/* Another rate than before? Asked as the program would: what it aims at may be of any type. */
static bool note_target(game_calls *self, PyObject *given)
{
    PyObject *target = given != NULL ? Py_NewRef(given) : PyLong_FromLong(0);
    PyObject *before = self->target != NULL ? Py_NewRef(self->target) : PyLong_FromLong(0);
    bool ok = true;
    if (target != NULL && before != NULL && target != before) {
        const int differs = PyObject_RichCompareBool(target, before, Py_NE);
        ok = differs >= 0 || answer(NULL) >= 0;
        if (ok && differs != 0) {
            Py_XSETREF(self->target, Py_NewRef(target));
            ok = tell(self, aims_at_name, target) >= 0;
        }
    }
    Py_XDECREF(before);
    Py_XDECREF(target);
    return ok && (!PyErr_Occurred() || answer(NULL) >= 0);
}

static bool ticked(game_calls *self)
{
    self->ticks++;
    return self->ticks < TICKS_WITHOUT_FRAME || self->shown == NULL || tell_time(self, paused_name, lc_now_ns()) >= 0;
}

/* The library's method, of the library's object. */
static PyObject *tick_real(game_calls *self, lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    if (!is_watched(self)) {
        return lc_patched_call_original(patch, args, count, names);
    }
    if (!note_target(self, framerate_of(args, PyVectorcall_NARGS(count), names))) {
        return NULL;
    }
    return after_call(self, wait_in(self, patch->original, args, count, names), ticked);
}

static PyObject *tick(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    game_calls *self = (game_calls *)patch->extra;
    const size_t given = (size_t)PyVectorcall_NARGS(count) + (names != NULL ? (size_t)PyTuple_GET_SIZE(names) : 0u);
    PyObject *real = PyVectorcall_NARGS(count) > 0 && given <= TICK_ARGUMENTS_MAX ? PyObject_GetAttr(args[0], real_name) : NULL;
    if (real == NULL) { /* no instance of ours: the original says what it thinks of it */
        if (PyErr_Occurred() && answer(NULL) < 0) {
            return NULL;
        }
        return tick_real(self, patch, args, count, names);
    }
    PyObject *passed[1 + TICK_ARGUMENTS_MAX];
    memcpy(passed + 1, args, given * sizeof *passed);
    passed[1] = real;
    PyObject *result =
        tick_real(self, patch, passed + 1, (size_t)PyVectorcall_NARGS(count) | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
    Py_DECREF(real);
    return result;
}

/* ---- the type ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    lc_patched_call call;
    bool is_method;
} roles[] = {
    {"flip", flip, false}, {"look", look, false},   {"await", await_event, false},
    {"wait", wait_for, false}, {"modal", modal, false}, {"tick", tick, true},
};

static PyObject *stand_in(PyObject *self, PyObject *args)
{
    PyObject *original;
    const char *role;
    if (!PyArg_ParseTuple(args, "Os", &original, &role)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(roles[i].name, role) == 0) {
            return roles[i].is_method ? lc_patched_function_new(roles[i].call, original, self, 0)
                                      : lc_patched_builtin_new(roles[i].call, original, self, 0);
        }
    }
    return PyErr_Format(PyExc_ValueError, "no such role: %s", role);
}

static PyObject *set_beat(PyObject *self, PyObject *beat)
{
    Py_XSETREF(((game_calls *)self)->beat, beat == Py_None ? NULL : Py_NewRef(beat));
    Py_RETURN_NONE;
}

static PyObject *on_shown(PyObject *self, PyObject *function)
{
    Py_XSETREF(((game_calls *)self)->shown, function == Py_None ? NULL : Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *on_input(PyObject *calls, PyObject *types)
{
    game_calls *self = (game_calls *)calls;
    PyObject *numbers = PySequence_Fast(types, "on_input() takes numbers of events");
    uint32_t count = 0;
    self->input_count = 0;
    for (Py_ssize_t i = 0; numbers != NULL && i < PySequence_Fast_GET_SIZE(numbers) && count < INPUT_TYPES_MAX; i++) {
        self->input[count++] = PyLong_AsLong(PySequence_Fast_GET_ITEM(numbers, i));
    }
    Py_XDECREF(numbers);
    if (PyErr_Occurred()) {
        return NULL;
    }
    self->input_count = count;
    Py_RETURN_NONE;
}

static PyObject *is_watching(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((game_calls *)self)->thread != 0);
}

static PyObject *over(PyObject *calls, PyObject *unused)
{
    game_calls *self = (game_calls *)calls;
    (void)unused;
    if (is_watched(self)) {
        lc_loop_hooks_work_end();
        lc_loop_hooks_run_end();
    } else {
        self->left = self->thread;
    }
    stop_telling(self);
    Py_RETURN_NONE;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"hooks", "work", NULL};
    PyObject *hooks, *work;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O!U", keywords, lc_loop_hooks_type(), &hooks, &work)) {
        return NULL;
    }
    game_calls *self = (game_calls *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->hooks = Py_NewRef(hooks);
        self->work = Py_NewRef(work);
    }
    return (PyObject *)self;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    const game_calls *self = (const game_calls *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->hooks);
    Py_VISIT(self->beat);
    Py_VISIT(self->shown);
    Py_VISIT(self->target);
    return 0;
}

/* A stand-in that may still be called has its hooks: only what they need not goes early. */
static int clear(PyObject *object)
{
    game_calls *self = (game_calls *)object;
    Py_CLEAR(self->beat);
    Py_CLEAR(self->shown);
    Py_CLEAR(self->target);
    return 0;
}

static void dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    Py_CLEAR(((game_calls *)object)->hooks);
    Py_CLEAR(((game_calls *)object)->work);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"stand_in", stand_in, METH_VARARGS, "stand_in(function, role): what is called in its place."},
    {"tell", set_beat, METH_O, "tell(beat | None): whose methods hear of the rest."},
    {"on_shown", on_shown, METH_O, "on_shown(function | None): called with the time after each frame."},
    {"on_input", on_input, METH_O, "on_input(types): the numbers of the events that are input."},
    {"is_watching", is_watching, METH_NOARGS, "Whether a thread's frames are watched."},
    {"over", over, METH_NOARGS, "Nothing is watched any more."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "GameCalls(hooks, work)\n--\n\nStand-ins for what a game shows, looks and waits by; see game_calls.h."},
    {Py_tp_new, make},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "loopcanary._native.GameCalls",
    .basicsize = sizeof(game_calls),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int lc_game_calls_add(PyObject *module)
{
    const struct {
        PyObject **name;
        const char *text;
    } names[] = {
        {&real_name, "_real"},           {&type_name, "type"},
        {&framerate_name, "framerate"},  {&began_name, "began"},
        {&aims_at_name, "aims_at"},      {&look_at_screen_name, "look_at_screen"},
        {&paused_name, "paused"},        {&waited_name, "waited"},
        {&modal_over_name, "modal_over"}, {&looked_name, "looked"},
        {&handled_name, "handled"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (*names[i].name == NULL && (*names[i].name = PyUnicode_InternFromString(names[i].text)) == NULL) {
            return -1;
        }
    }
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    const int result = type ? PyModule_AddObjectRef(module, "GameCalls", type) : -1;
    Py_XDECREF(type);
    return result;
}
