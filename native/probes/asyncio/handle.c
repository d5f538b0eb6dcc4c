#include "probes/asyncio/asyncio.h"

#include "module/bracket.h"
#include "cpython/objects/raised.h"
#include "cpython/names/member_offset.h"
#include "cpython/names/work.h"

/* Handle and TimerHandle keep their fields in __slots__; the members' descriptors say where. */
typedef struct {
    Py_ssize_t callback;
    Py_ssize_t args;
    Py_ssize_t context;
    Py_ssize_t loop;
    Py_ssize_t when;
} handle_slots;

/* Where the original calls something. */
typedef struct {
    int lasti;
    int line;
} call_site;

/* One asyncio in one interpreter: the module refuses subinterpreters. */
static struct {
    handle_slots slots;
    PyTypeObject *handle_type;
    PyTypeObject *timer_type;
    lc_patch_chain chain;
    PyObject *describe;
    PyObject *adopt;
    PyObject *traceback_code; /* the original's, for tracebacks; NULL: it was never seen */
    call_site of_callback;
    call_site of_handler;
    PyObject *traceback_globals;
} asyncio;

/* Borrowed; NULL with AttributeError, as an unset slot has it. */
static PyObject *slot(PyObject *handle, Py_ssize_t offset, const char *name)
{
    PyObject *value = *(PyObject **)((char *)handle + offset);
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, name);
    }
    return value;
}

/* context.run(callback, *args), as Context.run does it (CPython Python/context.c). */
static PyObject *run_in_context(PyObject *context, PyObject *callback, PyObject *args)
{
    if (!PyContext_CheckExact(context) || !PyTuple_CheckExact(args)) {
        PyObject *run = PyObject_GetAttrString(context, "run");
        PyObject *tuple = run ? PySequence_Tuple(args) : NULL;
        PyObject *first = tuple ? PyTuple_Pack(1, callback) : NULL;
        PyObject *all = first ? PySequence_Concat(first, tuple) : NULL;
        PyObject *result = all ? PyObject_Call(run, all, NULL) : NULL;
        Py_XDECREF(all);
        Py_XDECREF(first);
        Py_XDECREF(tuple);
        Py_XDECREF(run);
        return result;
    }
    if (PyContext_Enter(context) != 0) {
        return NULL;
    }
    if (lc_the_agent.scene_variable != NULL) {
        lc_thread_lane_note_scene();
    }
    PyObject *result =
        PyObject_Vectorcall(callback, &PyTuple_GET_ITEM(args, 0), (size_t)PyTuple_GET_SIZE(args), NULL);
    if (PyContext_Exit(context) != 0) {
        Py_CLEAR(result);
    }
    return result;
}

/* The traceback gets the entry that the original would have put there: its code, at this call. */
static void add_original_to_traceback(const call_site *site)
{
    if (asyncio.traceback_code != NULL) {
        lc_traceback_add((PyCodeObject *)asyncio.traceback_code, asyncio.traceback_globals, site->lasti,
                         site->line);
    }
}

/* self._loop.call_exception_handler(context) */
static PyObject *call_exception_handler(PyObject *handle, PyObject *context)
{
    PyObject *loop = slot(handle, asyncio.slots.loop, "_loop");
    PyObject *result = loop ? PyObject_CallMethod(loop, "call_exception_handler", "O", context) : NULL;
    if (result == NULL) {
        add_original_to_traceback(&asyncio.of_handler);
    }
    return result;
}

/* except BaseException as exc: self._loop.call_exception_handler(...). While the handler runs, exc is
 * what sys.exception() gives, as in the original's except clause. */
static PyObject *report_exception(PyObject *handle)
{
    add_original_to_traceback(&asyncio.of_callback);
    if (PyErr_ExceptionMatches(PyExc_SystemExit) || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        return NULL;
    }
    const lc_handling handling = lc_handling_begin();
    PyObject *arguments[] = {handle, handling.value};
    PyObject *context = PyObject_Vectorcall(asyncio.describe, arguments, 2, NULL);
    PyObject *result = context ? call_exception_handler(handle, context) : NULL;
    Py_XDECREF(context);
    lc_handling_end(handling);
    return result;
}

static PyObject *run_as_original(PyObject *handle)
{
    PyObject *context = slot(handle, asyncio.slots.context, "_context");
    PyObject *callback = context ? slot(handle, asyncio.slots.callback, "_callback") : NULL;
    PyObject *args = callback ? slot(handle, asyncio.slots.args, "_args") : NULL;
    PyObject *result = NULL;
    if (args != NULL) {
        /* A handle that is cancelled while it runs drops its callback and arguments. */
        Py_INCREF(context);
        Py_INCREF(callback);
        Py_INCREF(args);
        result = run_in_context(context, callback, args);
        Py_DECREF(args);
        Py_DECREF(callback);
        Py_DECREF(context);
    }
    if (result == NULL) {
        result = report_exception(handle);
        if (result == NULL) {
            return NULL;
        }
    }
    Py_DECREF(result);
    Py_RETURN_NONE;
}

/* The tick at which a timer was due; 0 for other handles, or where its loop has a clock of its own. */
static uint64_t due_tick(PyObject *handle, const lc_lane *lane)
{
    /* Most handles are no timers: they do not pay for the walk along their type's bases. */
    if (Py_IS_TYPE(handle, asyncio.handle_type) || !PyObject_TypeCheck(handle, asyncio.timer_type)) {
        return 0;
    }
    PyObject *when = *(PyObject **)((char *)handle + asyncio.slots.when);
    if (when == NULL || !PyFloat_CheckExact(when)) {
        return 0;
    }
    const lc_flight *flight = &lc_the_agent.flight;
    const double due_ns = PyFloat_AS_DOUBLE(when) * 1e9;
    const double opened_ns = (double)LC_LOAD(lane->opened_ns);
    if (!(due_ns >= opened_ns) || due_ns > opened_ns + 1e18) {
        return 0; /* of another clock than the monotonic one, or set before the lane was there */
    }
    const double tick_ns = (double)LC_LOAD(flight->header->tick_ns_q32) / 4294967296.0;
    return flight->paired.ticks + (uint64_t)((due_ns - (double)flight->paired.ns) / tick_ns);
}

/* NULL with an exception set: the program's own (a signal's handler raised while we were at it). */
static lc_lane *open_lane_for(PyObject *handle)
{
    lc_lane *lane = lc_thread_lane_open("asyncio");
    PyObject *loop = *(PyObject **)((char *)handle + asyncio.slots.loop);
    if (lane == NULL || loop == NULL || asyncio.adopt == NULL) {
        return lane;
    }
    if (!lc_call_ours(asyncio.adopt, loop)) {
        return NULL;
    }
    return lc_thread_lane_peek(); /* the engine may have been stopped meanwhile, and the lane unmapped */
}

static _Thread_local lc_patch_place place_in_chain;

static PyObject *run_patched(PyObject *handle)
{
    PyObject *result = lc_patch_chain_call(&asyncio.chain, &place_in_chain, handle);
    return result == NULL && !PyErr_Occurred() ? run_as_original(handle) : result;
}

static inline PyObject *run(PyObject *handle)
{
    return __builtin_expect(asyncio.chain.patches != NULL, 0) ? run_patched(handle) : run_as_original(handle);
}

/* The turn has been busy for long: its callbacks are counted by what they are. Found out before it runs: a
 * task lets go of its coroutine at its end, a cancelled handle of its callback. */
static __attribute__((noinline)) PyObject *run_tallied(PyObject *handle, lc_bracket bracket)
{
    PyObject *callback = *(PyObject **)((char *)handle + asyncio.slots.callback);
    const lc_work_kind kind = lc_work_kind_of(&lc_the_agent.source, callback);
    const uint64_t site = lc_asyncio_site_of(handle, callback);
    PyObject *result = run(handle);
    lc_bracket_end_tallied(bracket, kind, site);
    return result;
}

static PyObject *handle_run(PyObject *handle, PyObject *Py_UNUSED(unused))
{
    lc_lane *lane =
        lc_own_lane.generation == lc_the_agent.generation ? lc_own_lane.lane : open_lane_for(handle);
    if (__builtin_expect(lane == NULL, 0) && PyErr_Occurred()) {
        return NULL;
    }
    const uint64_t due = lane ? due_tick(handle, lane) : 0;
    const lc_bracket bracket = lc_bracket_begin(lane, (uint64_t)(uintptr_t)handle, due);
    if (__builtin_expect(lc_bracket_is_tallied(bracket), 0)) {
        return run_tallied(handle, bracket);
    }
    PyObject *result = run(handle);
    lc_bracket_end(bracket);
    return result;
}

static PyMethodDef run_method = {
    "_run", handle_run, METH_NOARGS,
    "Handle._run($self, /)\n--\n\nRuns the callback in its context; loopcanary's version of asyncio's own."};

static bool find_slot(PyObject *type, const char *name, Py_ssize_t *out)
{
    *out = lc_member_offset(type, name);
    if (*out == 0) {
        PyErr_Format(PyExc_RuntimeError, "asyncio's Handle.%s is no slot", name);
    }
    return *out != 0;
}

static bool find_slots(PyObject *handle_type, PyObject *timer_type, handle_slots *out)
{
    return find_slot(handle_type, "_callback", &out->callback) &&
           find_slot(handle_type, "_args", &out->args) && find_slot(handle_type, "_context", &out->context) &&
           find_slot(handle_type, "_loop", &out->loop) && find_slot(timer_type, "_when", &out->when);
}

PyObject *lc_asyncio_handle_method(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *handle_type, *timer_type, *original, *describe, *adopt, *code, *globals;
    call_site of_callback, of_handler;
    if (!PyArg_ParseTuple(args, "O!O!OOO(O(ii)(ii))O!", &PyType_Type, &handle_type, &PyType_Type, &timer_type,
                          &original, &describe, &adopt, &code, &of_callback.lasti, &of_callback.line,
                          &of_handler.lasti, &of_handler.line, &PyDict_Type, &globals)) {
        return NULL;
    }
    handle_slots slots;
    if (!find_slots(handle_type, timer_type, &slots)) {
        return NULL;
    }
    lc_asyncio_site_learn(handle_type, globals);
    if (!lc_patch_chain_push(&asyncio.chain, original == Py_None ? NULL : original)) {
        return NULL;
    }
    asyncio.slots = slots;
    Py_XSETREF(asyncio.handle_type, (PyTypeObject *)Py_NewRef(handle_type));
    Py_XSETREF(asyncio.timer_type, (PyTypeObject *)Py_NewRef(timer_type));
    Py_XSETREF(asyncio.describe, Py_NewRef(describe));
    Py_XSETREF(asyncio.adopt, Py_NewRef(adopt));
    if (PyCode_Check(code)) {
        Py_XSETREF(asyncio.traceback_code, Py_NewRef(code));
        asyncio.of_callback = of_callback;
        asyncio.of_handler = of_handler;
    }
    Py_XSETREF(asyncio.traceback_globals, Py_NewRef(globals));
    return PyDescr_NewMethod((PyTypeObject *)handle_type, &run_method);
}

PyObject *lc_asyncio_handle_forget(PyObject *Py_UNUSED(module), PyObject *taken_back)
{
    if (PyObject_IsTrue(taken_back) == 1) {
        lc_patch_chain_pop(&asyncio.chain);
    }
    /* `describe`, the traceback's code and the types stay: a callback that is running now may still need
     * them. */
    Py_CLEAR(asyncio.adopt);
    Py_RETURN_NONE;
}
