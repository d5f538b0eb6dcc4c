/* Callbacks for calls and returns, and what is kept in code objects for them. */
#include <unistd.h>

#include "core/methods/calls.h"
#include "module/agent.h"
#include "module/thread_lane.h"
#include "cpython/objects/raised.h"
#include "probes/hooks/stand_in.h"
#include "probes/methods/tracer_state.h"

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#endif

/* What co_extra points to (_PyCodeObjectExtra in Objects/codeobject.c, the same from 3.6 to 3.15):
 * PyUnstable_Code_GetExtra is a third of what an event costs us. `choose` compares the two. */
typedef struct {
    Py_ssize_t size;
    void *values[];
} code_extras;

static inline uintptr_t extra_of(PyObject *code)
{
    const code_extras *extras = ((PyCodeObject *)code)->co_extra;
    return extras != NULL && lc_the_tracer.extra < extras->size
               ? (uintptr_t)extras->values[lc_the_tracer.extra]
               : 0;
}

static uintptr_t of_code(PyObject *code)
{
    const uintptr_t extra = extra_of(code);
    return extra >> LC_CODE_STAMP_SHIFT == lc_the_tracer.generation ? extra : LC_CODE_UNKNOWN;
}

static inline uint32_t number_in(uintptr_t extra)
{
    return (uint32_t)(extra >> LC_CODE_WHAT_BITS) & LC_CALLS_ID_MAX;
}

/* ---- slow calls --------------------------------------------------------------------------------------
 *
 * Calls that took too long outside of what loops and watches judge: noted when they end, and told at once.
 *
 * What a turn is in, its stall judges. A call around turns, as a program's main() is around its loop, took no
 * longer than the loop did.
 */

static bool is_judged_otherwise(const lc_calls *calls)
{
    const lc_lane *lane = lc_thread_lane_peek();
    return lane != NULL &&
           (lc_lane_in_turn(lane) || lc_calls_has_begun_in_last(calls, LC_LOAD(lane->turn_begin)));
}

/* Whether this is the code of the main module, which is the whole program. */
static bool is_program(const lc_calls *calls, PyObject *code)
{
    return calls->depth == 0 && !(((PyCodeObject *)code)->co_flags & CO_OPTIMIZED);
}

/* The call of this code that has just ended was slow. The thread is traced. */
static void note_slow(PyObject *code)
{
    lc_calls *calls = lc_traced_own.calls;
    if (!is_program(calls, code) && !is_judged_otherwise(calls) && lc_calls_note_slow(calls)) {
        lc_the_tracer.slow++;
        lc_agent_tell();
    }
}

/* ---- calls and returns ------------------------------------------------------------------------------- */

/* Whether both the thread and the code object that has this are traced. */
static inline bool is_noted(uintptr_t extra)
{
    const uintptr_t stamp = extra & ~((uintptr_t)LC_CALLS_ID_MAX << LC_CODE_WHAT_BITS);
    return __builtin_expect(stamp == lc_the_tracer.stamp && lc_traced_own.stamp == stamp, 1);
}

/* Asks Python. LC_CODE_UNKNOWN: it could not answer now (near the limit of recursion, a full disk). An
 * exception may be set then, the program's own, from a signal's handler. */
static uintptr_t choose(PyObject *code)
{
    const uint64_t generation = lc_the_tracer.generation;
    PyObject *chooser = Py_NewRef(lc_the_tracer.chooser);
    PyObject *answer = PyObject_CallOneArg(chooser, code);
    Py_DECREF(chooser);
    const long number = answer != NULL ? PyLong_AsLong(answer) : -1;
    if (!lc_raised_is_ours(answer) || number < 0 || number > (long)LC_CALLS_ID_MAX ||
        generation != lc_the_tracer.generation) {
        return LC_CODE_UNKNOWN;
    }
    const uintptr_t extra = (uintptr_t)lc_the_tracer.generation << LC_CODE_STAMP_SHIFT |
                            (uintptr_t)number << LC_CODE_WHAT_BITS |
                            (number != 0 ? LC_CODE_CHOSEN : LC_CODE_LEFT_OUT);
    if (PyUnstable_Code_SetExtra(code, lc_the_tracer.extra, (void *)extra) != 0) {
        PyErr_Clear();
        return LC_CODE_UNKNOWN;
    }
    return of_code(code) == extra ? extra : LC_CODE_UNKNOWN;
}

/* The slow paths are functions of their own, so that the fast path saves no registers. */
#define APART __attribute__((noinline, cold))

#if PY_VERSION_HEX >= 0x030C0000 /* None has no count of references from here on */
#define NONE Py_None
#else
#define NONE Py_NewRef(Py_None)
#endif

static APART PyObject *note(PyObject *code, bool begins)
{
    lc_calls *calls = lc_traced_own_calls();
    const uintptr_t extra = of_code(code);
    if (extra & LC_CODE_CHOSEN && calls != NULL) {
        if (!begins) {
            (void)lc_calls_leave(calls, number_in(extra)); /* it began on a thread that was not traced then */
            return NONE;
        }
        if (!lc_work_is_noted()) {
            lc_note_work(code);
        }
        lc_calls_enter(calls, number_in(extra));
    }
    return NONE;
}

/* Code that is noted, on a thread that is. */
static inline void enter(PyObject *code, uintptr_t extra)
{
    if (!lc_work_is_noted()) {
        lc_note_work(code);
    }
    lc_calls_enter_soon(lc_traced_own.calls, number_in(extra));
}

static APART PyObject *leave_slow(PyObject *code)
{
    note_slow(code);
    return NONE;
}

static APART PyObject *leave_otherwise(PyObject *code, uint32_t number)
{
    return lc_calls_leave(lc_traced_own.calls, number) ? leave_slow(code) : NONE;
}

static APART PyObject *start_otherwise(PyObject *code)
{
    uintptr_t extra = lc_the_tracer.runs ? of_code(code) : LC_CODE_LEFT_OUT;
    if (extra == LC_CODE_UNKNOWN) {
        extra = choose(code);
        if (extra == LC_CODE_UNKNOWN) {
            return PyErr_Occurred() ? NULL : NONE;
        }
    }
    return extra & LC_CODE_LEFT_OUT && lc_the_tracer.runs ? Py_NewRef(lc_the_tracer.disable)
                                                          : note(code, true);
}

static PyObject *on_start(PyObject *Py_UNUSED(self), PyObject *const *args, size_t Py_UNUSED(count),
                          PyObject *Py_UNUSED(names))
{
    const uintptr_t extra = extra_of(args[0]);
    if (!is_noted(extra)) {
        return start_otherwise(args[0]);
    }
    enter(args[0], extra);
    return NONE;
}

static PyObject *on_enter(PyObject *Py_UNUSED(self), PyObject *const *args, size_t Py_UNUSED(count),
                          PyObject *Py_UNUSED(names))
{
    const uintptr_t extra = extra_of(args[0]);
    if (!is_noted(extra)) {
        return note(args[0], true);
    }
    enter(args[0], extra);
    return NONE;
}

static PyObject *on_leave(PyObject *Py_UNUSED(self), PyObject *const *args, size_t Py_UNUSED(count),
                          PyObject *Py_UNUSED(names))
{
    const uintptr_t extra = extra_of(args[0]);
    if (!is_noted(extra)) {
        return note(args[0], false);
    }
    const uint32_t number = number_in(extra);
    if (!lc_calls_can_leave_soon(lc_traced_own.calls, number)) {
        return leave_otherwise(args[0], number);
    }
    return lc_calls_leave_soon(lc_traced_own.calls, number) ? leave_slow(args[0]) : NONE;
}

static PyMemberDef members[] = {LC_STAND_IN_VECTORCALL, {NULL, 0, 0, 0, NULL}};
LC_STAND_IN_SPEC(spec, "CallEvent", lc_stand_in,
                 Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                 {Py_tp_doc,
                  "What sys.monitoring calls: as a built-in function, without the way to its arguments."},
                 {Py_tp_call, PyVectorcall_Call}, {Py_tp_members, members});

int lc_call_events_add(PyObject *module)
{
    static const struct {
        const char *name;
        vectorcallfunc call;
    } events[] = {{"calls_on_start", on_start}, {"calls_on_enter", on_enter}, {"calls_on_leave", on_leave}};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    for (size_t i = 0; type != NULL && i < sizeof events / sizeof *events; i++) {
        PyObject *event = lc_stand_in_new((PyTypeObject *)type, events[i].call, 0);
        const int failed = event == NULL ? -1 : PyModule_AddObjectRef(module, events[i].name, event);
        Py_XDECREF(event);
        if (failed != 0) {
            Py_CLEAR(type);
        }
    }
    Py_XDECREF(type); /* the events have it */
    return type != NULL ? 0 : -1;
}
/* ---- before 3.12 -------------------------------------------------------------------------- */

#if PY_VERSION_HEX < 0x030C0000
static APART int event_otherwise(PyObject *code, bool is_call)
{
    PyObject *answer = is_call ? start_otherwise(code) : note(code, false);
    Py_XDECREF(answer);
    return answer != NULL ? 0 : -1;
}

static int on_event(PyObject *Py_UNUSED(self), PyFrameObject *frame, int what, PyObject *Py_UNUSED(argument))
{
    if (what != PyTrace_CALL && what != PyTrace_RETURN) {
        return 0;
    }
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame has it */
    const uintptr_t extra = extra_of(code);
    if (!is_noted(extra)) {
        return event_otherwise(code, what == PyTrace_CALL);
    }
    if (what == PyTrace_CALL) {
        enter(code, extra);
        return 0;
    }
    lc_calls *calls = lc_traced_own.calls;
    const uint32_t number = number_in(extra);
    if (lc_calls_can_leave_soon(calls, number) ? lc_calls_leave_soon(calls, number)
                                               : lc_calls_leave(calls, number)) {
        note_slow(code);
    }
    return 0;
}

bool lc_another_profiler_runs(void)
{
    const PyThreadState *thread = PyThreadState_Get();
    return thread->c_profilefunc != NULL && thread->c_profilefunc != on_event;
}

void lc_profile_thread(void)
{
    if (lc_traced_own.calls != NULL && !lc_another_profiler_runs()) {
        PyEval_SetProfile(on_event, NULL);
    }
}

static bool is_watched(uint64_t tid)
{
    const lc_flight *flight = &lc_the_agent.flight;
    const uint64_t used = LC_ACQUIRE(flight->header->sections[LC_SECTION_LANES].used);
    for (uint64_t i = 0; i < used && i < LC_LANE_COUNT; i++) {
        const lc_lane *lane = lc_flight_lane(flight, i);
        if (LC_LOAD(lane->tid) == tid && LC_ACQUIRE(lane->state) != LC_LANE_CLOSED) {
            return true;
        }
    }
    return tid == (uint64_t)getpid();
}

/* Found anew each time: an audit hook of Python's may let go of the GIL, and threads end meanwhile. */
static PyThreadState *first_to_change(bool on)
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    while (thread != NULL && (on ? thread->c_profilefunc != NULL || !is_watched(thread->native_thread_id)
                                 : thread->c_profilefunc != on_event)) {
        thread = PyThreadState_Next(thread);
    }
    return thread;
}

bool lc_profile_threads(bool on)
{
    bool changed = false;
    PyThreadState *thread;
    for (unsigned i = 0; i < LC_LANE_COUNT && (thread = first_to_change(on)) != NULL; i++) {
        if (_PyEval_SetProfile(thread, on ? on_event : NULL, NULL) != 0) {
            PyErr_Clear(); /* an audit hook's */
            break;
        }
        changed = true;
    }
    return changed;
}
#else
bool lc_another_profiler_runs(void) { return false; } /* each has its tool id */
void lc_profile_thread(void) {}
bool lc_profile_threads(bool Py_UNUSED(on)) { return true; }
#endif
