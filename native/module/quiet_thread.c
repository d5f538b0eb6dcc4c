#include "module/quiet_thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "core/clock/clock.h"
#include "core/watchdog/futex.h"
#include "core/host/own_signals.h"
#include "module/thread_lane.h"

static const char capsule_name[] = "loopcanary.thread";

typedef struct {
    PyObject *function;
    lc_bell over; /* 1: the function has returned */
    _Atomic int owners; /* the thread itself and its handle: the last one frees */
} quiet_thread;

static void let_go(quiet_thread *thread)
{
    if (atomic_fetch_sub(&thread->owners, 1) == 1) {
        free(thread);
    }
}

static void *run(void *argument)
{
    quiet_thread *thread = argument;
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    lc_thread_is_ours = true;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallNoArgs(thread->function);
    if (result == NULL) {
        PyErr_WriteUnraisable(thread->function);
    }
    Py_XDECREF(result);
    Py_CLEAR(thread->function);
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

int lc_quiet_thread_start(void *(*run_it)(void *), void *argument)
{
    pthread_t id;
    pthread_attr_t attributes;
    sigset_t before;
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return error;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    lc_own_signals_begin(&before);
    error = pthread_create(&id, &attributes, run_it, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
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
    const int error = lc_quiet_thread_start(run, thread);
    if (error != 0) {
        Py_CLEAR(thread->function);
        let_go(thread);
        Py_DECREF(handle);
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
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
