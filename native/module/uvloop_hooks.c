#include "uvloop_hooks.h"

#include "bracket.h"
#include "got.h"
#include "spin_look.h"
#include "uvloop_work.h"
#include "wait_hook.h"
#include "work.h"

typedef int (*context_function)(PyObject *);
typedef int (*uv_run_function)(void *loop, int mode);

enum { ENTER, EXIT, RUN, FUNCTIONS };
enum { ENTRIES_MAX = 4 }; /* of one function, in one object */

static struct {
    lc_got_patch patches[FUNCTIONS][ENTRIES_MAX];
    size_t counts[FUNCTIONS];
    PyObject *waits; /* what hook_waits was asked for; NULL: nothing */
    bool turns;      /* runs and waits are seen */
    PyObject *loop_seen;
    PyObject *spins; /* see spin_look.h */
} uvloop;

/* What the hooks lead to. Never changed back: threads may be inside them. */
static context_function next_enter = PyContext_Enter;
static context_function next_exit = PyContext_Exit;
static uv_run_function next_uv_run;

enum { INNER_HANDLES = 2 }; /* of a loop: for the queue of callbacks, and for that of writes */

/* What the calling thread does in uvloop. Contexts are addresses only. What each callback needs comes first, on one cache
 * line: between two callbacks the kernel has the caches to itself, and each line that has to come back costs
 * some nanoseconds. */
typedef struct {
    _Alignas(64) lc_lane *lane;
    uint64_t generation; /* of the agent that `lane` is of */
    uint64_t epoch;      /* of the callback; an even one: nothing was begun */
    uint32_t depth;      /* contexts entered */
    uint32_t bracket_at; /* the depth at which the callback was begun; 0: none is */
    uint32_t inner_at;   /* the depth at which a handle was begun that runs others; 0: none is */
    bool own_turn;       /* the callback is a turn by itself */
    bool is_known;       /* what the callback is */
    bool is_tallied;
    bool is_refused;           /* a context was not entered, though uvloop will leave it */
    PyObject *inner[INNER_HANDLES]; /* contexts of the run's handles that run others, as far as they are known */
    lc_uvloop_note *note;      /* the lane's */
    PyObject *refused;
    lc_work_kind kind;
    uint32_t inner_count;
    bool runs;        /* inside uv_run */
    bool was_in_turn; /* of a loop around it */
} uvloop_thread;

_Static_assert(offsetof(uvloop_thread, refused) == 64, "what each callback needs: one cache line");

#define FRESH_THREAD {.generation = UINT64_MAX}

/* One for each lane. Never given back: the watchdog may look at the note of a thread that has just ended. */
static lc_uvloop_note notes[LC_LANE_COUNT];

static _Thread_local uvloop_thread own __attribute__((tls_model("initial-exec"))) = FRESH_THREAD;

/* ---- runs -------------------------------------------------------------------------------- */

/* Without the GIL. The lane is opened at the run's first callback, which has it: uvloop runs its idle handle at
 * once. */
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

static lc_uvloop_note *note_of(const lc_lane *lane)
{
    const size_t bytes = (size_t)((const char *)lane - (const char *)lc_flight_lane(&lc_the_agent.flight, 0));
    lc_uvloop_note *note = &notes[bytes / LC_LANE_BYTES];
    const lc_uvloop_type type = lc_uvloop_handle_type();
    LC_RELEASE(note->type, type.address);
    LC_RELEASE(note->bytes, type.bytes);
    return note;
}

/* The run's first callback, or the first under this agent. NULL with an exception set: the program's own. */
static __attribute__((noinline)) lc_lane *adopt_thread(void)
{
    lc_lane *lane = lc_thread_lane_get("uvloop");
    if (lane != NULL && uvloop.loop_seen != NULL) {
        if (!lc_call_ours(uvloop.loop_seen, NULL)) {
            return NULL;
        }
        lane = lc_thread_lane_peek(); /* the engine may have been stopped meanwhile */
    }
    if (lane == NULL && PyErr_Occurred()) {
        return NULL;
    }
    own.generation = lc_the_agent.generation;
    own.lane = lane;
    own.depth = own.inner_at = own.bracket_at = 0; /* what was entered under another agent leaves unseen */
    if (lane != NULL) {
        own.note = note_of(lane);
        lc_thread_lane_set_kind(lane, "uvloop");
        if (own.runs && uvloop.turns) {
            own.was_in_turn = lc_lane_in_turn(lane);
            (void)lc_wait_enter(lane);
            lc_bracket_interrupt(lane);
            lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
            lc_spin_look_at(lane);
        }
    }
    return lane;
}

static inline lc_lane *own_lane(void)
{
    return __builtin_expect(own.generation == lc_the_agent.generation, 1) ? own.lane : adopt_thread();
}

/* ---- callbacks --------------------------------------------------------------------------- */

/* The tick at which a timer was due; 0: unknown. */
static uint64_t due_tick(const lc_lane *lane, double due_s)
{
    const lc_flight *flight = &lc_the_agent.flight;
    const double due_ns = due_s * 1e9;
    const double opened_ns = (double)LC_LOAD(lane->opened_ns);
    if (!(due_ns >= opened_ns) || due_ns > opened_ns + 1e18) {
        return 0;
    }
    const double tick_ns = (double)LC_LOAD(flight->header->tick_ns_q32) / 4294967296.0;
    return flight->paired.ticks + (uint64_t)((due_ns - (double)flight->paired.ns) / tick_ns);
}

/* Where nothing was begun, the callback around it is not ours to end. */
static inline lc_bracket own_bracket(void)
{
    return (lc_bracket){own.epoch & 1u ? own.lane : NULL, own.generation, own.epoch, own.own_turn};
}

static __attribute__((noinline, cold)) void end_tallied(void)
{
    if (LC_AGENT_RUNS(own.generation)) {
        lc_bracket_end_tallied(own_bracket(), own.kind, 0);
    }
}

static inline __attribute__((always_inline)) void end_callback(void)
{
    own.bracket_at = 0;
    if (__builtin_expect(own.is_tallied, 0)) {
        end_tallied();
    } else {
        lc_bracket_end(own_bracket());
    }
}

static lc_work_kind kind_of(lc_uvloop_work work)
{
    if (work.callable == NULL || !work.proven) {
        return (lc_work_kind){0, 0};
    }
    return PyUnicode_CheckExact(work.callable) ? (lc_work_kind){(uint64_t)(uintptr_t)work.callable, 0}
                                               : lc_work_kind_of(&lc_the_agent.source, work.callable);
}

/* A loop keeps its handles that run others, and they their contexts, for as long as it runs: in one run these addresses
 * mean nothing else. Where the run's end is not seen, nothing is remembered. */
static void remember_inner(PyObject *context)
{
    if (own.runs) {
        own.inner[own.inner_count++ % INNER_HANDLES] = context;
    }
}

static bool is_inner(const PyObject *context) { return context == own.inner[0] || context == own.inner[1]; }

static inline __attribute__((always_inline)) void bracket(lc_lane *lane, uint64_t named, uint64_t due)
{
    const lc_bracket begun = lc_bracket_begin(lane, named, due);
    own.epoch = begun.epoch;
    own.own_turn = begun.own_turn;
    own.bracket_at = own.depth;
    own.is_tallied = lc_bracket_is_tallied(begun);
    if (__builtin_expect(lc_the_agent.scene_variable != NULL, 0)) {
        lc_thread_lane_note_scene();
    }
}

/* The word of the lane's note; 0: it is in use, by a callback that a loop inside it does not end. Each store keeps behind the
 * end of the callback before, for those who look at its epoch. */
static uint64_t note_handle(lc_lane *lane, uint64_t handle, const PyObject *context)
{
    if (__builtin_expect(lc_lane_in_callback(lane), 0)) {
        return 0;
    }
    LC_RELEASE(own.note->handle, handle);
    LC_RELEASE(own.note->context, (uint64_t)(uintptr_t)context);
    return lc_uvloop_word(own.note);
}

/* What libuv runs may be a handle that runs others, a timer that was due at some time, and a reader that cancels its handle
 * before anybody looks: it is read at once. */
static __attribute__((noinline)) void begin_direct(lc_lane *lane, PyObject *context, const uintptr_t *words)
{
    const lc_uvloop_work work = lc_uvloop_find_work(&lc_the_agent.source, context, words);
    if (work.role == LC_UVLOOP_INNER) {
        own.inner_at = own.depth;
        remember_inner(context);
        return;
    }
    bracket(lane, (uint64_t)(uintptr_t)work.callable, work.due_s > 0 ? due_tick(lane, work.due_s) : 0);
    own.is_known = work.role == LC_UVLOOP_CALLBACK;
    if (__builtin_expect(own.is_tallied, 0)) {
        own.kind = kind_of(work);
        lc_spin_look_note_event(lane);
    }
}

/* What the queue runs may have asked for itself; a protocol's method is there since something came. */
static __attribute__((noinline, cold)) void note_kind(lc_lane *lane, PyObject *context, const uintptr_t *words)
{
    const lc_uvloop_work work = lc_uvloop_find_work(&lc_the_agent.source, context, words);
    own.kind = kind_of(work);
    if (own.inner_at == 0 || work.callable == NULL || !work.proven || PyUnicode_CheckExact(work.callable)) {
        lc_spin_look_note_event(lane);
    } else {
        lc_spin_look_note(lane, lc_spin_identity(work.callable), work.callable, uvloop.spins);
    }
    /* Enough may have been seen; and where somebody was told of it, the engine may have stopped meanwhile. */
    own.is_tallied = LC_AGENT_RUNS(own.generation) && lc_tally_is_on(lane);
}

static __attribute__((noinline)) void end_unknown(void) { end_callback(); }

/* A protocol's method and what the queue runs are callbacks, whatever they are; nobody may ever want to know which. Whether
 * a method is alive is nowhere to be seen: only the watchdog looks at it, as carefully as at all. */
static inline __attribute__((always_inline)) void begin_callback(lc_lane *lane, PyObject *context,
                                                                 const uintptr_t *words)
{
    if (__builtin_expect(own.bracket_at != 0, 0)) {
        if (own.is_known) {
            return; /* such as a transport that tells its protocol to pause, while a callback writes to it */
        }
        end_unknown();
    }
    const lc_uvloop_held held = lc_uvloop_find_held(words);
    uint64_t named = held.word;
    if (__builtin_expect(!held.is_method, 0)) {
        if (is_inner(context)) {
            own.inner_at = own.depth;
            return;
        }
        if (own.inner_at == 0 || held.word == 0) {
            begin_direct(lane, context, words);
            return;
        }
        named = note_handle(lane, held.word, context);
    }
    bracket(lane, named, 0);
    own.is_known = true;
    if (__builtin_expect(own.is_tallied, 0)) {
        note_kind(lane, context, words);
    }
}

/* The program's own exception came up while we were at it (a signal's handler): it goes through as if the context had
 * refused. uvloop leaves it in any case. */
static int refuse(PyObject *context)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (next_exit(context) != 0) {
        PyErr_Clear();
    }
    PyErr_Restore(type, value, traceback);
    own.refused = context;
    own.is_refused = true;
    return -1;
}

/* PyContext_Enter, as uvloop calls it; `words`: of its caller, see uvloop_work.h. */
int lc_uvloop_enter(PyObject *context, const uintptr_t *words) __attribute__((visibility("hidden"), used, hot));
int lc_uvloop_enter(PyObject *context, const uintptr_t *words)
{
    const int result = next_enter(context);
    own.is_refused = false;
    if (__builtin_expect(result != 0, 0)) {
        return result;
    }
    lc_lane *lane = own_lane();
    if (__builtin_expect(lane == NULL, 0) && PyErr_Occurred()) {
        return refuse(context);
    }
    own.depth++;
    if (__builtin_expect(lane != NULL, 1)) {
        begin_callback(lane, context, words);
    }
    return 0;
}

static __attribute__((hot)) int hooked_exit(PyObject *context)
{
    if (__builtin_expect(own.is_refused, 0) && own.refused == context) {
        own.is_refused = false;
        return 0;
    }
    if (__builtin_expect(own.depth > 0, 1)) { /* what was entered before the hooks were there leaves unseen */
        if (__builtin_expect(own.depth == own.bracket_at, 1)) {
            end_callback();
        } else if (own.depth == own.inner_at) {
            own.inner_at = 0;
        }
        own.depth--;
    }
    return next_exit(context); /* uvloop leaves once, also where that is refused */
}

/* The hook itself, on one cache line: puts the caller's registers in front of the caller's stack and calls
 * lc_uvloop_enter(context, words). */
int lc_uvloop_enter_hook(PyObject *context) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".section .text.hot,\"ax\",@progbits\n"
        ".p2align 6\n"
        ".globl lc_uvloop_enter_hook\n"
        ".hidden lc_uvloop_enter_hook\n"
        ".type lc_uvloop_enter_hook, @function\n"
        "lc_uvloop_enter_hook:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %r15\n.cfi_adjust_cfa_offset 8\n"
        "push %r14\n.cfi_adjust_cfa_offset 8\n"
        "push %r13\n.cfi_adjust_cfa_offset 8\n"
        "push %r12\n.cfi_adjust_cfa_offset 8\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n"
        "push %rbp\n.cfi_adjust_cfa_offset 8\n"
        "mov %rsp, %rsi\n"
        "sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
        "call lc_uvloop_enter\n"
        "add $56, %rsp\n.cfi_adjust_cfa_offset -56\n" /* the registers hold what they did: callees keep them */
        "ret\n"
        ".cfi_endproc\n"
        ".size lc_uvloop_enter_hook, .-lc_uvloop_enter_hook\n"
        ".text\n");
#elif defined(__aarch64__)
__asm__(".section .text.hot,\"ax\",@progbits\n"
        ".p2align 6\n"
        ".globl lc_uvloop_enter_hook\n"
        ".hidden lc_uvloop_enter_hook\n"
        ".type lc_uvloop_enter_hook, %function\n"
        "lc_uvloop_enter_hook:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* bti c */
        "sub sp, sp, #96\n.cfi_adjust_cfa_offset 96\n"
        "stp x19, x20, [sp, #0]\n"
        "stp x21, x22, [sp, #16]\n"
        "stp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\n"
        "stp x29, x30, [sp, #80]\n.cfi_rel_offset x29, 80\n.cfi_rel_offset x30, 88\n"
        "mov x1, sp\n"
        "bl lc_uvloop_enter\n"
        "ldp x29, x30, [sp, #80]\n.cfi_restore x29\n.cfi_restore x30\n"
        "add sp, sp, #96\n.cfi_adjust_cfa_offset -96\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size lc_uvloop_enter_hook, .-lc_uvloop_enter_hook\n"
        ".text\n");
#endif

/* ---- laying and lifting ------------------------------------------------------------------ */

#define CODE(function) ((void *)(uintptr_t)(function))

static void *choose_enter(void *unused, void *original)
{
    (void)unused;
    if (original != CODE(lc_uvloop_enter_hook)) {
        next_enter = (context_function)(uintptr_t)original;
    }
    return CODE(lc_uvloop_enter_hook);
}

static void *choose_exit(void *unused, void *original)
{
    (void)unused;
    if (original != CODE(hooked_exit)) {
        next_exit = (context_function)(uintptr_t)original;
    }
    return CODE(hooked_exit);
}

static void *choose_run(void *unused, void *original)
{
    (void)unused;
    if (original != CODE(hooked_uv_run)) {
        next_uv_run = (uv_run_function)(uintptr_t)original;
    }
    return CODE(hooked_uv_run);
}

static const struct {
    lc_got_call call;
    lc_got_choose choose;
} functions[FUNCTIONS] = {
    [ENTER] = {{.symbol = "PyContext_Enter", .fallback = CODE(PyContext_Enter)}, choose_enter},
    [EXIT] = {{.symbol = "PyContext_Exit", .fallback = CODE(PyContext_Exit)}, choose_exit},
    [RUN] = {{.symbol = "uv_run", .own_too = true}, choose_run},
};

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
    uvloop.counts[function] = lc_got_replace(object, functions[function].call, functions[function].choose, NULL,
                                             uvloop.patches[function], ENTRIES_MAX);
    return uvloop.counts[function] != 0;
}

/* Callbacks need both: an entered context that is never seen to be left would be a callback without end. */
static bool lay_callbacks(lc_got_object object)
{
    const bool laid = lay(EXIT, object) && lay(ENTER, object);
    if (!laid) {
        take_back(EXIT);
    }
    return laid;
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
    PyObject *handle, *timer, *loop_seen, *spins;
    bool runs = false;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyType_Type, &handle, &PyType_Type, &timer, &loop_seen, &spins)) {
        return NULL;
    }
    const lc_got_object object = {.address = CODE(((PyTypeObject *)handle)->tp_dealloc)};
    lc_uvloop_work_of_types((PyTypeObject *)handle, (PyTypeObject *)timer);
    Py_XSETREF(uvloop.loop_seen, Py_NewRef(loop_seen));
    Py_XSETREF(uvloop.spins, Py_NewRef(spins));
    PyObject *waits = hook_turns(module, object, &runs);
    if (waits == NULL) {
        return NULL;
    }
    uvloop.turns = runs && PyTuple_GET_SIZE(waits) != 0;
    return Py_BuildValue("(ONO)", runs ? Py_True : Py_False, waits, lay_callbacks(object) ? Py_True : Py_False);
}

PyObject *lc_unhook_uvloop(PyObject *module, PyObject *unused)
{
    (void)unused;
    for (int function = 0; function < FUNCTIONS; function++) {
        take_back(function);
    }
    Py_CLEAR(uvloop.loop_seen);
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
