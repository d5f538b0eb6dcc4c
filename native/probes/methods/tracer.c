/* Calls of chosen functions, noted as they happen (core/methods/calls.h): on the main thread and on each that
 * has a lane.
 *
 * On 3.12 and later the events are sys.monitoring's, which calls the C functions below; before, those of
 * PyEval_SetProfile. A code object is shown to Python once (the chooser), which answers its number, or 0: not
 * chosen. The number lies in the code object. All functions hold the GIL.
 *
 * Adds calls_start(prefix, map, words, slow_us, chooser, disable, when_short) -> words | None: files are
 * `<prefix><number>`, `map` the path of the map, to which names of work are added, a call of `slow_us` is
 * slow (events.c; 2^64 - 1: none is); the room that the calling thread got, None where it is not traced
 * (yet); when_short() is called once, where a later one gets less, or none. OSError: there is no room for
 * it. RuntimeError (3.11): a profiler runs. calls_stop(): files stay, also the parent's in a forked child;
 * idempotent. calls_refused() -> int: threads for whose calls there was no file. calls_slow() -> int:
 * calls that were noted as slow since the last start. calls_on_start, calls_on_enter, calls_on_leave:
 * callbacks of sys.monitoring. */
#include "module/bindings.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/patches/patches.h"
#include "module/agent.h"
#include "module/thread_lane.h"
#include "cpython/objects/raised.h"
#include "probes/methods/tracer_state.h"

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#endif

/* the file of a thread that has ended: its last stall is stored by then */
#define KEPT_NS UINT64_C(10000000000)

lc_tracer lc_the_tracer = {.stamp = LC_CODE_CHOSEN};
_Thread_local lc_traced_thread lc_traced_own __attribute__((tls_model("initial-exec")));

static void begin_generation(void)
{
    lc_the_tracer.generation++;
    lc_the_tracer.stamp = (uintptr_t)lc_the_tracer.generation << LC_CODE_STAMP_SHIFT | LC_CODE_CHOSEN;
}

static void trace_own(lc_calls *calls)
{
    lc_traced_own.calls = calls;
    lc_traced_own.noted = 0;
    lc_traced_own.generation = lc_the_tracer.generation;
    lc_traced_own.stamp = calls != NULL ? lc_the_tracer.stamp : 0;
}

static lc_calls *file_of_ended(uint64_t for_ns)
{
    lc_calls *oldest = NULL;
    uint64_t oldest_ns = UINT64_MAX;
    for (unsigned i = 0; i < lc_the_tracer.file_count; i++) {
        const uint64_t closed =
            atomic_load_explicit(&lc_the_tracer.files[i].header->closed_ns, memory_order_relaxed);
        if (closed != 0 && closed < oldest_ns) {
            oldest = &lc_the_tracer.files[i];
            oldest_ns = closed;
        }
    }
    return oldest != NULL && lc_now_ns() - oldest_ns >= for_ns ? oldest : NULL;
}

static lc_calls *new_file(int *error)
{
    char path[PATH_MAX];
    if (lc_the_tracer.file_count == LC_CALLS_FILES_MAX) {
        *error = EMFILE;
        return NULL;
    }
    if ((size_t)snprintf(path, sizeof path, "%s%u", lc_the_tracer.prefix, lc_the_tracer.file_count) >=
        sizeof path) {
        *error = ENAMETOOLONG;
        return NULL;
    }
    lc_calls *calls = &lc_the_tracer.files[lc_the_tracer.file_count];
    *error =
        lc_calls_create(calls, path, lc_the_tracer.words, LC_LOAD(lc_the_agent.flight.header->tick_ns_q32));
    calls->slow_us = lc_the_tracer.slow_us;
    lc_the_tracer.file_count += *error == 0;
    return *error == 0 ? calls : NULL;
}

static bool is_to_be_traced(void)
{
    const bool is_main = (pid_t)syscall(SYS_gettid) == getpid();
    return lc_the_tracer.runs && lc_the_agent.running && !lc_thread_is_ours &&
           (is_main || lc_thread_lane_peek() != NULL);
}

/* Decides whether the calling thread is traced, until it gets a lane or the tracer starts anew. 0, or an
 * errno. */
static int begin_thread(void)
{
    int error = 0;
    trace_own(NULL);
    if (!is_to_be_traced()) {
        return 0;
    }
    lc_calls *calls = file_of_ended(KEPT_NS);
    calls = calls != NULL ? calls : new_file(&error);
    calls = calls != NULL ? calls : file_of_ended(0);
    if (calls == NULL) {
        lc_the_tracer.refused++;
        return error;
    }
    lc_calls_begin(calls, (uint64_t)syscall(SYS_gettid));
    trace_own(calls);
    return 0;
}

lc_calls *lc_traced_own_calls(void)
{
    if (lc_traced_own.generation != lc_the_tracer.generation) {
        (void)begin_thread();
    }
    return lc_traced_own.calls;
}

static void thread_ends(uint64_t tid)
{
    for (unsigned i = 0; lc_the_tracer.runs && i < lc_the_tracer.file_count; i++) {
        lc_calls *calls = &lc_the_tracer.files[i];
        if (calls->header->tid == tid && tid != (uint64_t)getpid()) {
            lc_calls_end(calls);
            if (lc_traced_own.calls == calls) {
                trace_own(NULL);
            }
        }
    }
}

/* Inside fork(2): the files are the parent's, whose pages the child shares. */
static void let_go_in_child(void)
{
    for (unsigned i = 0; i < lc_the_tracer.file_count; i++) {
        lc_calls_let_go(&lc_the_tracer.files[i]);
    }
    lc_the_tracer.runs = false;
    lc_the_tracer.slow = 0;
    begin_generation();
    trace_own(NULL);
}

static bool prepare_for_forks(void)
{
    static bool prepared; /* handlers cannot be taken back */
    const int error = prepared ? 0 : pthread_atfork(NULL, NULL, let_go_in_child);
    (void)(!prepared && error == 0 && lc_patch_note("+hook pthread_atfork, for good"));
    prepared = error == 0;
    return error == 0 || lc_os_error(error) != NULL;
}

static void tell_of_room(int error)
{
    PyObject *tell = lc_the_tracer.when_short;
    const lc_calls *calls = lc_traced_own.calls;
    if (tell != NULL && (error != 0 || (calls != NULL && calls->mask + 1u < lc_the_tracer.words))) {
        lc_the_tracer.when_short = NULL; /* once */
        Py_XDECREF(PyObject_CallNoArgs(tell));
        Py_DECREF(tell);
        lc_raised_pass_on();
    }
}

static void thread_is_watched(void)
{
    if (lc_the_tracer.runs && lc_traced_own.calls == NULL) {
        const int error = begin_thread();
        const lc_raised before = lc_raised_take();
        lc_profile_thread();
        tell_of_room(error);
        lc_raised_put_back(before);
    }
}

static void stop(void)
{
    lc_the_tracer.runs = false;
    begin_generation();
    for (unsigned i = 0; i < lc_the_tracer.file_count; i++) {
        lc_calls_close(&lc_the_tracer.files[i]);
    }
    lc_the_tracer.file_count = 0;
    lc_the_tracer.works_known = lc_the_tracer.work_count = 0;
    memset(lc_the_tracer.works, 0, sizeof lc_the_tracer.works);
    Py_CLEAR(lc_the_tracer.chooser);
    Py_CLEAR(lc_the_tracer.disable);
    Py_CLEAR(lc_the_tracer.when_short);
}

static bool has_place_in_code(void)
{
    if (!lc_the_tracer.has_extra) {
        lc_the_tracer.extra = PyUnstable_Eval_RequestCodeExtraIndex(NULL);
        lc_the_tracer.has_extra = lc_the_tracer.extra >= 0;
        if (!lc_the_tracer.has_extra) {
            PyErr_SetString(PyExc_RuntimeError, "other tools use all extra slots of code objects");
        }
    }
    return lc_the_tracer.has_extra;
}

static PyObject *start_tracing(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *prefix, *map;
    unsigned long long words, slow_us;
    PyObject *chooser, *disable, *when_short;
    if (!PyArg_ParseTuple(args, "yyKKOOO", &prefix, &map, &words, &slow_us, &chooser, &disable,
                          &when_short) ||
        !has_place_in_code() || !prepare_for_forks()) {
        return NULL;
    }
    const bool fit = strlen(prefix) < sizeof lc_the_tracer.prefix && strlen(map) < sizeof lc_the_tracer.map;
    if (!lc_the_agent.running || lc_the_tracer.runs || !fit || lc_another_profiler_runs()) {
        PyErr_SetString(PyExc_RuntimeError, lc_another_profiler_runs()
                                                ? "another profiler runs on this thread"
                                                : "the engine does not run, or it traces already");
        return NULL;
    }
    strcpy(lc_the_tracer.prefix, prefix);
    strcpy(lc_the_tracer.map, map);
    lc_the_tracer.words = words;
    lc_the_tracer.slow_us = slow_us < INT64_MAX ? (int64_t)slow_us : INT64_MAX;
    lc_the_tracer.refused = lc_the_tracer.slow = 0;
    lc_the_tracer.chooser = Py_NewRef(chooser);
    lc_the_tracer.disable = Py_NewRef(disable);
    lc_the_tracer.when_short = Py_NewRef(when_short);
    lc_the_tracer.runs = true;
    begin_generation();
    const int error = begin_thread();
    if (error != 0) {
        stop();
        return lc_os_error(error);
    }
    if (!lc_profile_threads(true)) {
        stop();
        PyErr_SetString(PyExc_RuntimeError, "another profiler runs on the threads that are watched");
        return NULL;
    }
    return lc_traced_own.calls != NULL ? PyLong_FromUnsignedLongLong(lc_traced_own.calls->mask + 1u)
                                       : Py_NewRef(Py_None);
}

static PyObject *stop_tracing(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    (void)lc_profile_threads(false);
    /* a forked child's do not run */
    for (unsigned i = 0; lc_the_tracer.runs && i < lc_the_tracer.file_count; i++) {
        lc_calls_end(&lc_the_tracer.files[i]);
    }
    stop();
    Py_RETURN_NONE;
}

static PyObject *count_refused(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(lc_the_tracer.refused);
}

static PyObject *count_slow(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(lc_the_tracer.slow);
}

static PyMethodDef functions[] = {
    {"calls_start", start_tracing, METH_VARARGS,
     "Notes calls of chosen functions from now on: probes/methods/tracer.c."},
    {"calls_stop", stop_tracing, METH_NOARGS, "Notes no more calls; the files stay."},
    {"calls_refused", count_refused, METH_NOARGS, "Threads for whose calls there was no file."},
    {"calls_slow", count_slow, METH_NOARGS, "Calls that were noted as slow since the last start."},
    {NULL, NULL, 0, NULL},
};

int lc_calls_add(PyObject *module)
{
    lc_thread_lane_listen(thread_is_watched, thread_ends);
    return PyModule_AddFunctions(module, functions) == 0 ? lc_call_events_add(module) : -1;
}
