#include "module/quiet_thread.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "core/clock/clock.h"
#include "core/watchdog/futex.h"
#include "core/host/own_thread.h"
#include "module/agent.h"
#include "module/bindings.h"
#include "module/thread_lane.h"

static const char capsule_name[] = "loopcanary.thread";

#define ARRIVAL_NS UINT64_C(1000000000)

typedef struct {
    PyObject *function;
    lc_bell over;       /* 1: the function has returned */
    _Atomic int owners; /* the thread itself and its handle: the last one frees */
} quiet_thread;

/* The interpreter must not end before they have it: a thread that asks then ends the process. */
static _Atomic int arriving; /* threads that will ask for the GIL */
static _Atomic int calling;  /* threads that were made to call a hook */
static __thread bool is_calling;

/* First of all on a thread of ours. */
static void begin(void)
{
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    lc_thread_is_ours = true;
    lc_own_rights_follow();
}

static PyGILState_STATE arrive(void)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    atomic_fetch_sub(&arriving, 1);
    return state;
}

static void wait_until(const _Atomic int *count, int most, uint64_t deadline_ns)
{
    Py_BEGIN_ALLOW_THREADS
    while (atomic_load(count) > most && lc_now_ns() < deadline_ns) {
        (void)poll(NULL, 0, 1);
    }
    Py_END_ALLOW_THREADS
}

void lc_quiet_threads_arrive(void) { wait_until(&arriving, 0, lc_now_ns() + ARRIVAL_NS); }

int lc_quiet_calls(void) { return atomic_load(&calling) - is_calling; }

void lc_quiet_calls_end(uint64_t deadline_ns) { wait_until(&calling, is_calling, deadline_ns); }

void lc_quiet_threads_leave(void)
{
    atomic_store(&arriving, 0);
    atomic_store(&calling, is_calling);
}

static void call_and_drop(PyObject *function)
{
    PyObject *result = PyObject_CallNoArgs(function);
    if (result == NULL) {
        PyErr_WriteUnraisable(function);
    }
    Py_XDECREF(result);
    Py_DECREF(function);
}

static void let_go(quiet_thread *thread)
{
    if (atomic_fetch_sub(&thread->owners, 1) == 1) {
        free(thread);
    }
}

static void *run(void *argument)
{
    quiet_thread *thread = argument;
    begin();
    const PyGILState_STATE state = arrive();
    call_and_drop(thread->function);
    PyGILState_Release(state);
    lc_bell_ring(&thread->over);
    let_go(thread);
    return NULL;
}

static void drop_handle(PyObject *capsule)
{
    quiet_thread *thread = PyCapsule_GetPointer(capsule, capsule_name);
    if (thread != NULL) {
        let_go(thread);
    }
}

/* Runs run_it(argument), which calls arrive(). 0 or an errno. */
static int start(void *(*run_it)(void *), void *argument)
{
    atomic_fetch_add(&arriving, 1);
    const int error = lc_own_thread_start(run_it, argument, true);
    atomic_fetch_sub(&arriving, error == 0 ? 0 : 1);
    return error;
}

/* An engine that stops waits until this has the GIL; where it has stopped, there may be no interpreter. */
static void *call_hook(void *take)
{
    is_calling = true;
    begin();
    if (__atomic_load_n(&lc_the_agent.running, __ATOMIC_SEQ_CST)) {
        const PyGILState_STATE state = arrive();
        PyObject *function = lc_the_agent.running ? ((lc_quiet_take *)(uintptr_t)take)() : NULL;
        if (function != NULL) {
            call_and_drop(function);
        }
        PyGILState_Release(state);
    } else {
        atomic_fetch_sub(&arriving, 1);
    }
    atomic_fetch_sub(&calling, 1);
    return NULL;
}

bool lc_quiet_thread_call(lc_quiet_take *take)
{
    atomic_fetch_add(&calling, 1);
    const bool is_made = start(call_hook, (void *)(uintptr_t)take) == 0;
    atomic_fetch_sub(&calling, is_made ? 0 : 1);
    return is_made;
}

PyObject *lc_start_thread(PyObject *Py_UNUSED(module), PyObject *function)
{
    quiet_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return PyErr_NoMemory();
    }
    atomic_store(&thread->owners, 1);
    PyObject *handle = PyCapsule_New(thread, capsule_name, drop_handle);
    if (handle == NULL) {
        free(thread);
        return NULL;
    }
    thread->function = Py_NewRef(function);
    atomic_store(&thread->owners, 2);
    const int error = start(run, thread);
    if (error != 0) {
        Py_CLEAR(thread->function);
        let_go(thread);
        Py_DECREF(handle);
        return lc_os_error(error);
    }
    return handle;
}

PyObject *lc_join_thread(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *handle;
    double timeout_s;
    if (!PyArg_ParseTuple(args, "Od", &handle, &timeout_s)) {
        return NULL;
    }
    quiet_thread *thread = PyCapsule_GetPointer(handle, capsule_name);
    if (thread == NULL) {
        return NULL;
    }
    const uint64_t deadline = lc_now_ns() + (uint64_t)(timeout_s * 1e9);
    bool in_time = true;
    Py_BEGIN_ALLOW_THREADS
    while (atomic_load_explicit(&thread->over, memory_order_acquire) == 0 && in_time) {
        in_time = lc_bell_wait(&thread->over, 0, deadline);
    }
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(atomic_load_explicit(&thread->over, memory_order_acquire) != 0);
}
