#include "probes/qt/qt.h"

#include "cpython/objects/raised.h"

static _Thread_local lc_qt_thread *own_thread __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_key;
static PyObject *loop_seen; /* under the GIL; from install to uninstall: Qt calls without a module at hand */

static void free_thread(void *thread)
{
    own_thread = NULL;
    free(thread);
}

bool lc_qt_threads_prepare(void) { return pthread_key_create(&thread_key, free_thread) == 0; }

void lc_qt_threads_seen_by(PyObject *seen) { Py_XSETREF(loop_seen, Py_XNewRef(seen)); }

lc_qt_thread *lc_qt_thread_get(void)
{
    if (__builtin_expect(own_thread == NULL, 0)) {
        own_thread = lc_thread_memory(thread_key, sizeof *own_thread);
    }
    return own_thread;
}

static uint64_t generation_now(void) { return __atomic_load_n(&lc_the_agent.generation, __ATOMIC_SEQ_CST); }

bool lc_qt_thread_is_known(const lc_qt_thread *thread)
{
    return thread->asked && thread->asked_generation == generation_now();
}

void lc_qt_thread_pass_by(lc_qt_thread *thread)
{
    thread->asked = true;
    thread->asked_generation = generation_now();
    thread->run = (lc_wait){0};
}

/* Gets the lane from the running agent, or from one that this call starts. */
static void open_lane(lc_qt_thread *thread)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    const lc_raised before = lc_raised_take();
    if (loop_seen != NULL) {
        lc_lane *lane = lc_call_ours(loop_seen, NULL) ? lc_thread_lane_get("qt") : NULL;
        lc_raised_pass_on();
        thread->run = (lc_wait){lane, lc_the_agent.generation, lc_the_agent.watchdog.lanes};
        if (lane != NULL) {
            lc_thread_lane_set_kind(lane, "qt");
        }
    }
    thread->asked_generation = lc_the_agent.generation;
    lc_raised_put_back(before);
    PyGILState_Release(state);
}

void lc_qt_thread_know(lc_qt_thread *thread)
{
    if (__builtin_expect(lc_qt_thread_is_known(thread), 1)) {
        return;
    }
    lc_qt_thread_pass_by(thread);
    if (lc_may_call_python()) {
        open_lane(thread);
    }
}

lc_lane *lc_qt_thread_begin_storing(const lc_qt_thread *thread)
{
    if (thread->run.lane == NULL || lc_storing_begin(thread->run.generation)) {
        return thread->run.lane;
    }
    lc_storing_end();
    return NULL;
}
