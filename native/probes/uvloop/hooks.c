/* uvloop, bracketed from outside: it is one shared object of C that offers no hooks.
 *
 *     uv_run                         a loop runs on this thread
 *     epoll_wait, epoll_pwait        its turns (wait_hook.h)
 *     PyContext_Enter, ..._Exit      its callbacks: uvloop enters a context around each one
 *     uv_idle_start, uv_check_start  which of these are no callbacks: the handles that run the queue and the
 *                                    writes
 *
 * What runs is uvloop's own business: a callback is named by asyncio's current task, or by the outermost
 * function that the loop has called (native/cpython/names/work_words.h).
 *
 * All are entries of that object's table of imported functions (native/core/got/got.h). Nothing of
 * uvloop's Python side is touched, so it does not matter how a loop was made. A loop that runs already
 * when the hooks are laid has its callbacks watched, each as a turn of its own: where its run ends would
 * not be seen.
 *
 * hook_uvloop(Handle, running_loop, loop_seen, spins) -> (runs, waits, callbacks): what could be hooked.
 * `running_loop` gives the thread's, `loop_seen` is called at each run's first callback, `spins` as of
 * TurnSelect (probes/asyncio/turn_select.c), before the queue runs. Where runs or waits are not hooked,
 * callbacks are turns by themselves. */
#include "module/bindings.h"

#include "module/bracket.h"
#include "cpython/objects/raised.h"
#include "core/got/got.h"
#include "probes/hooks/wait_hook.h"
#include "cpython/names/work_words.h"

typedef int (*context_function)(PyObject *);
typedef int (*uv_run_function)(void *loop, int mode);
typedef void (*uv_callback)(void *handle);
typedef int (*uv_start_function)(void *handle, uv_callback callback);

enum { ENTER, EXIT, RUN, IDLE, CHECK, FUNCTIONS };
enum { ENTRIES_MAX = 4 }; /* of one function, in one object */
enum { FRAMES_MAX = UINT16_MAX };

static struct {
    lc_got_patch patches[FUNCTIONS][ENTRIES_MAX];
    size_t counts[FUNCTIONS];
    PyObject *waits; /* what hook_waits was asked for; NULL: nothing */
    bool turns;      /* runs and waits are seen */
    PyObject *loop_seen;
    PyObject *running_loop;
    PyObject *spins;
} uvloop;

/* What the hooks lead to. Never changed back: threads may be inside them. */
static context_function next_enter = PyContext_Enter;
static context_function next_exit = PyContext_Exit;
static uv_run_function next_uv_run;
static uv_start_function next_idle_start, next_check_start;
static uv_callback next_idle, next_check; /* uvloop has one of each; NULL: not seen yet */

/* What the calling thread does in uvloop. Contexts are addresses only. On one cache line: between two
 * callbacks the kernel has the caches to itself, and each line that has to come back costs some
 * nanoseconds. */
typedef struct {
    _Alignas(64) lc_lane *lane;
    uint64_t generation; /* of the agent that `lane` is of */
    uint64_t epoch;      /* of the callback; an even one: nothing was begun */
    uint64_t work;       /* of all callbacks of the run */
    PyObject *refused;
    uint32_t depth;      /* contexts entered */
    uint32_t bracket_at; /* the depth at which the callback was begun; 0: none is */
    uint32_t inner_at;   /* the depth at which a handle was begun that runs others; 0: none is */
    bool own_turn;       /* the callback is a turn by itself */
    bool runs_others;    /* the next context is that of a handle that runs others */
    bool is_refused;     /* uvloop will leave a context that was not entered */
    bool runs;           /* inside uv_run */
    bool was_in_turn;    /* of a loop around it */
} uvloop_thread;

_Static_assert(sizeof(uvloop_thread) == 64, "one cache line");

#define FRESH_THREAD {.generation = UINT64_MAX}

static _Thread_local uvloop_thread own __attribute__((tls_model("initial-exec"))) = FRESH_THREAD;

/* ---- runs -------------------------------------------------------------------------------- */

/* Without the GIL. The lane is opened at the run's first callback, which has it: uvloop runs its idle
 * handle at once. */
static int hooked_uv_run(void *loop, int mode)
{
    const uvloop_thread outer = own;
    const lc_wait outer_wait = lc_wait_suspend();
    own = (uvloop_thread)FRESH_THREAD;
    own.runs = true;
    const int result = next_uv_run(loop, mode);
    lc_wait_finish(outer_wait, own.was_in_turn);
    own = outer;
    return result;
}

/* Frames of Python's around the loop. Allocates. */
static uint32_t frames_here(void)
{
    uint32_t count = 0;
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != NULL && count < FRAMES_MAX) {
        PyFrameObject *outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
        count++;
    }
    Py_XDECREF(frame);
    return count;
}

/* A word for all that the run calls: uvloop's handles cannot be read. No exception is set before; none
 * after. */
static uint64_t work_of_run(void)
{
    PyObject *loop = uvloop.running_loop != NULL ? PyObject_CallNoArgs(uvloop.running_loop) : NULL;
    PyErr_Clear();
    const uint64_t address = loop == NULL || loop == Py_None ? 0 : (uint64_t)(uintptr_t)loop;
    Py_XDECREF(loop);
    return lc_called_work(address, frames_here());
}

/* False with an exception set: the program's own. */
static bool find_lane(void)
{
    lc_lane *lane = lc_thread_lane_get("uvloop");
    if (lane != NULL && uvloop.loop_seen != NULL) {
        if (!lc_call_ours(uvloop.loop_seen, NULL)) {
            return false;
        }
        lane = lc_thread_lane_peek(); /* the engine may have been stopped meanwhile */
    }
    if (lane == NULL && PyErr_Occurred()) {
        return false;
    }
    own.generation = lc_the_agent.generation;
    own.lane = lane;
    /* contexts that were entered under another agent are left without a bracket */
    own.depth = own.inner_at = own.bracket_at = 0;
    if (lane != NULL) {
        own.work = work_of_run();
        lc_thread_lane_set_kind(lane, "uvloop");
        if (own.runs && uvloop.turns) {
            own.was_in_turn = lc_lane_in_turn(lane);
            (void)lc_wait_enter(lane);
            lc_bracket_interrupt(lane);
            lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
        }
    }
    return true;
}

/* The run's first callback, or the first under this agent. An exception that is set stays set; false where
 * the program's own came up meanwhile, and is set in its place. */
static __attribute__((noinline)) bool adopt_thread(void)
{
    const lc_raised before = lc_raised_take();
    if (find_lane()) {
        lc_raised_put_back(before);
        return true;
    }
    lc_raised_drop(before);
    return false;
}

/* ---- spins ------------------------------------------------------------------------------- */

#define SPINS_LOOK 256u

static _Thread_local uint32_t told_looks __attribute__((tls_model("initial-exec")));

/* The queue of what is ready is about to run, once a turn. Tells the probe how many turns in a row have begun
 * without a wait of libuv's: SPINS_LOOK of them at a time, and 0 after the next wait. False with an exception
 * set: the program's own. */
static bool count_looks(void)
{
    const uint32_t looks = lc_wait_looks(), told = told_looks;
    const bool has_waited = looks < told;
    if (uvloop.spins == NULL || (!has_waited && looks - told < SPINS_LOOK)) {
        return true;
    }
    told_looks = has_waited ? 0 : looks;
    const lc_raised before = lc_raised_take();
    if (lc_call_ours_with(uvloop.spins, has_waited ? 0 : looks - told)) {
        lc_raised_put_back(before);
        return true;
    }
    lc_raised_drop(before);
    return false;
}

/* ---- callbacks --------------------------------------------------------------------------- */

/* If nothing was begun here, the open callback belongs to an outer frame and must not be ended. */
static inline lc_bracket own_bracket(void)
{
    return (lc_bracket){own.epoch & 1u ? own.lane : NULL, own.generation, own.epoch, own.own_turn};
}

static inline __attribute__((always_inline)) void end_callback(void)
{
    own.bracket_at = 0;
    lc_bracket_end(own_bracket());
}

/* The handles that run the queue and the writes enter a context, too: what they run are callbacks. So are
 * a protocol's methods, but where a transport tells its protocol to pause while a callback writes to it. */
static inline __attribute__((always_inline)) void begin_callback(lc_lane *lane)
{
    if (__builtin_expect(own.runs_others, 0)) {
        own.runs_others = false;
        own.inner_at = own.depth;
        return;
    }
    if (__builtin_expect(own.bracket_at != 0, 0)) {
        return;
    }
    const lc_bracket begun = lc_bracket_begin(lane, own.work, 0);
    own.epoch = begun.epoch;
    own.own_turn = begun.own_turn;
    own.bracket_at = own.depth;
    if (__builtin_expect(lc_the_agent.scene_variable != NULL, 0)) {
        lc_thread_lane_note_scene();
    }
}

/* The program's own exception came up while we were at it (a signal's handler): it goes through as if the
 * context had refused. uvloop leaves it in any case. */
static int refuse(PyObject *context)
{
    const lc_raised before = lc_raised_take();
    (void)next_exit(context);
    lc_raised_put_back(before);
    own.refused = context;
    own.is_refused = true;
    return -1;
}

static __attribute__((hot)) int hooked_enter(PyObject *context)
{
    const int result = next_enter(context);
    own.is_refused = false;
    if (__builtin_expect(result != 0, 0)) {
        return result;
    }
    if (__builtin_expect(own.generation != lc_the_agent.generation, 0) && !adopt_thread()) {
        return refuse(context);
    }
    if (__builtin_expect(own.runs_others, 0) && !count_looks()) {
        return refuse(context);
    }
    own.depth++;
    if (__builtin_expect(own.lane != NULL, 1)) {
        begin_callback(own.lane);
    }
    return 0;
}

static __attribute__((hot)) int hooked_exit(PyObject *context)
{
    if (__builtin_expect(own.is_refused, 0) && own.refused == context) {
        own.is_refused = false;
        return 0;
    }
    if (__builtin_expect(own.depth > 0, 1)) { /* 0: it was entered before the hooks were laid */
        if (__builtin_expect(own.depth == own.bracket_at, 1)) {
            end_callback();
        } else if (own.depth == own.inner_at) {
            own.inner_at = 0;
        }
        own.depth--;
    }
    return next_exit(context); /* uvloop leaves once, also where that is refused */
}

/* ---- handles that run others ------------------------------------------------------------- */

/* libuv calls one with the loop's thread, without the GIL; uvloop's loops have one of each kind. */
static inline void run_others(uv_callback callback, void *handle)
{
    own.runs_others = true;
    callback(handle);
    own.runs_others = false;
}

static void hooked_idle(void *handle) { run_others(next_idle, handle); }
static void hooked_check(void *handle) { run_others(next_check, handle); }

static int start(uv_start_function next, void *handle, uv_callback callback, uv_callback *known,
                 uv_callback hook)
{
    if (*known == NULL) {
        *known = callback;
    }
    return next(handle, callback == *known ? hook : callback);
}

static int hooked_idle_start(void *handle, uv_callback callback)
{
    return start(next_idle_start, handle, callback, &next_idle, hooked_idle);
}

static int hooked_check_start(void *handle, uv_callback callback)
{
    return start(next_check_start, handle, callback, &next_check, hooked_check);
}

/* ---- laying and lifting ------------------------------------------------------------------ */

#define CODE(function) ((void *)(uintptr_t)(function))

static const struct {
    lc_got_call call;
    void *hook;
    void **next;
} functions[FUNCTIONS] = {
    [ENTER] = {{"PyContext_Enter", CODE(PyContext_Enter), false}, CODE(hooked_enter), (void **)&next_enter},
    [EXIT] = {{"PyContext_Exit", CODE(PyContext_Exit), false}, CODE(hooked_exit), (void **)&next_exit},
    [RUN] = {{"uv_run", NULL, true}, CODE(hooked_uv_run), (void **)&next_uv_run},
    [IDLE] = {{"uv_idle_start", NULL, true}, CODE(hooked_idle_start), (void **)&next_idle_start},
    [CHECK] = {{"uv_check_start", NULL, true}, CODE(hooked_check_start), (void **)&next_check_start},
};

/* lc_got_choose; `number`: one of `functions`. */
static void *choose(void *number, void *original)
{
    const int function = *(const int *)number;
    if (original != functions[function].hook) {
        *functions[function].next = original;
    }
    return functions[function].hook;
}

static void take_back(int function)
{
    for (size_t i = 0; i < uvloop.counts[function]; i++) {
        (void)lc_got_restore(&uvloop.patches[function][i]);
    }
    uvloop.counts[function] = 0;
}

static bool lay(int function, lc_got_object object)
{
    take_back(function);
    uvloop.counts[function] = lc_got_replace(object, functions[function].call, choose, &function,
                                             uvloop.patches[function], ENTRIES_MAX);
    return uvloop.counts[function] != 0;
}

/* Callbacks need all: an entered context that is never seen to be left would be a callback without end,
 * and so would be the queue of all that is ready. */
static bool lay_callbacks(lc_got_object object)
{
    static const int needed[] = {IDLE, CHECK, EXIT, ENTER};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (!lay(needed[i], object)) {
            for (size_t laid = 0; laid < i; laid++) {
                take_back(needed[laid]);
            }
            return false;
        }
    }
    return true;
}

/* libuv is a part of uvloop's object, or, in some distributions, a library of its own: where uv_run is. */
static PyObject *hook_turns(PyObject *module, lc_got_object object, bool *runs)
{
    *runs = lay(RUN, object);
    Py_CLEAR(uvloop.waits);
    if (*runs) {
        uvloop.waits = PyLong_FromVoidPtr(CODE(next_uv_run));
    }
    return uvloop.waits != NULL ? lc_hook_waits(module, uvloop.waits) : PyTuple_New(0);
}

PyObject *lc_hook_uvloop(PyObject *module, PyObject *args)
{
    PyObject *handle, *running_loop, *loop_seen, *spins;
    bool runs = false;
    if (!PyArg_ParseTuple(args, "O!OOO", &PyType_Type, &handle, &running_loop, &loop_seen, &spins)) {
        return NULL;
    }
    const lc_got_object object = {.address = CODE(((PyTypeObject *)handle)->tp_dealloc)};
    Py_XSETREF(uvloop.running_loop, Py_NewRef(running_loop));
    Py_XSETREF(uvloop.loop_seen, Py_NewRef(loop_seen));
    Py_XSETREF(uvloop.spins, Py_NewRef(spins));
    PyObject *waits = hook_turns(module, object, &runs);
    if (waits == NULL) {
        return NULL;
    }
    uvloop.turns = runs && PyTuple_GET_SIZE(waits) != 0;
    return Py_BuildValue("(ONO)", runs ? Py_True : Py_False, waits,
                         lay_callbacks(object) ? Py_True : Py_False);
}

PyObject *lc_unhook_uvloop(PyObject *module, PyObject *Py_UNUSED(unused))
{
    for (int function = 0; function < FUNCTIONS; function++) {
        take_back(function);
    }
    Py_CLEAR(uvloop.loop_seen);
    Py_CLEAR(uvloop.running_loop);
    Py_CLEAR(uvloop.spins);
    if (uvloop.waits == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *waits = uvloop.waits;
    uvloop.waits = NULL;
    PyObject *result = lc_unhook_waits(module, waits);
    Py_DECREF(waits);
    return result;
}
