#include "module/thread_lane.h"

#include <string.h>

#include "core/lane/long_work.h"
#include "core/signals/disposition.h"
#include "cpython/objects/raised.h"

#if PY_VERSION_HEX < 0x030D0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

_Thread_local lc_thread_lane lc_own_lane __attribute__((tls_model("initial-exec")));
_Thread_local bool lc_thread_is_ours __attribute__((tls_model("initial-exec")));

static void (*when_opened)(void);
static void (*when_closed)(uint64_t tid);

void lc_thread_lane_listen(void (*opened)(void), void (*closed)(uint64_t tid))
{
    when_opened = opened;
    when_closed = closed;
}

static const char capsule_name[] = "loopcanary.lane";

/* A capsule in the thread state's dict dies with the thread, under the GIL: the lane's end. */
typedef struct {
    lc_lane *lane;
    uint64_t generation;
} lane_owner;

static void close_lane(PyObject *capsule)
{
    lane_owner *owner = PyCapsule_GetPointer(capsule, capsule_name);
    if (owner == NULL) {
        PyErr_Clear();
        return;
    }
    if (LC_AGENT_RUNS(owner->generation)) {
        lc_lane *lane = owner->lane;
        lc_lane_drop_callback(lane);
        lc_turn_end(&lc_the_agent.watchdog.lanes, lane);
        lc_lane_note_sched(lane);
        LC_STORE(lane->closed_ns, lc_now_ns());
        LC_RELEASE(lane->state, LC_LANE_CLOSED);
        if (when_closed != NULL) {
            when_closed(LC_LOAD(lane->tid));
        }
    }
    if (lc_own_lane.lane == owner->lane) {
        /* A C thread may outlive its thread state and come back with another (PyGILState_Ensure). */
        lc_own_lane = (lc_thread_lane){NULL, UINT64_MAX};
    }
    PyMem_Free(owner);
}

static bool tie_to_thread(lc_lane *lane)
{
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    lane_owner *owner = dict == NULL ? NULL : PyMem_Malloc(sizeof *owner);
    if (owner == NULL) {
        return false;
    }
    *owner = (lane_owner){lane, lc_the_agent.generation};
    PyObject *capsule = PyCapsule_New(owner, capsule_name, close_lane);
    if (capsule == NULL) {
        PyErr_Clear();
        PyMem_Free(owner);
        return false;
    }
    const bool tied = PyDict_SetItemString(dict, capsule_name, capsule) == 0;
    Py_DECREF(capsule); /* not tied: closes the lane at once */
    if (!tied) {
        PyErr_Clear();
    }
    return tied;
}

/* First one never used, then one whose thread is gone. */
static lc_lane *find_lane(lc_agent *agent)
{
    const lc_section *section = &agent->flight.header->sections[LC_SECTION_LANES];
    const uint64_t used = LC_ACQUIRE(section->used);
    lc_lane *fresh = used < LC_LANE_COUNT ? lc_flight_claim(&agent->flight, LC_SECTION_LANES, used) : NULL;
    if (fresh != NULL) {
        return fresh;
    }
    for (uint64_t i = 0; i < used; i++) {
        lc_lane *lane = lc_flight_lane(&agent->flight, i);
        if (lc_lane_is_done(lane)) {
            return lane;
        }
    }
    return NULL;
}

static void set_name(char *field, size_t room, const char *text)
{
    memset(field, 0, room);
    size_t length = strnlen(text, room - 1u);
    while (length > 0 && text[length] != '\0' && ((unsigned char)text[length] & 0xC0u) == 0x80u) {
        length--; /* not in the middle of a character */
    }
    memcpy(field, text, length);
}

/* threading.current_thread().name would make a dummy thread object, which the program could see; the
 * table of living threads is only looked at. Where gevent has patched threading, the table goes by
 * greenlets: the main thread is then known by its number. */
static void copy_thread_name(lc_lane *lane)
{
    PyObject *modules = PyImport_GetModuleDict();                     /* borrowed */
    PyObject *threading = PyDict_GetItemString(modules, "threading"); /* borrowed */
    PyObject *active = threading ? PyObject_GetAttrString(threading, "_active") : NULL;
    PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    PyObject *thread =
        active && ident && PyDict_Check(active) ? PyDict_GetItemWithError(active, ident) : NULL;
    PyObject *name = thread ? PyObject_GetAttrString(thread, "_name") : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    const char *otherwise = (pid_t)LC_LOAD(lane->tid) == getpid() ? "MainThread" : "";
    set_name(lane->thread_name, sizeof lane->thread_name, text ? text : otherwise);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(ident);
    Py_XDECREF(active);
}

void lc_thread_lane_set_kind(lc_lane *lane, const char *loop_kind)
{
    const bool is_free =
        !lc_lane_in_turn(lane) || lane->loop_kind[0] == '\0' || strcmp(lane->loop_kind, "thread") == 0;
    if (is_free && strcmp(lane->loop_kind, loop_kind) != 0) {
        set_name(lane->loop_kind, sizeof lane->loop_kind, loop_kind);
    }
}

/* Epochs and the count of ended stalls go on from the lane's last owner; the sums start at 0. */
static void take_over(lc_agent *agent, lc_lane *lane, const char *loop_kind)
{
    const uint64_t rate = LC_LOAD(agent->flight.header->tick_ns_q32);
    LC_RELEASE(lane->state, LC_LANE_FREE);
    memset((char *)lane + offsetof(lc_lane, turns), 0, offsetof(lc_lane, state) - offsetof(lc_lane, turns));
    memset(lane->turn_histogram, 0, sizeof lane->turn_histogram);
    memset(lane->loop_kind, 0, sizeof lane->loop_kind);
    LC_STORE(lane->scene, lc_thread_lane_title());
    LC_STORE(lane->abandoned, 0);
    LC_STORE(lane->tid, (uint64_t)syscall(SYS_gettid));
    LC_STORE(lane->thread_state, (uint64_t)(uintptr_t)PyThreadState_Get());
    LC_STORE(lane->on_cpu_ns, 0);
    LC_STORE(lane->run_queue_ns, 0);
    lc_lane_note_sched(lane);
    LC_STORE(lane->on_cpu_begin_ns, LC_LOAD(lane->on_cpu_ns));
    LC_STORE(lane->run_queue_begin_ns, LC_LOAD(lane->run_queue_ns));
    LC_STORE(lane->opened_ns, lc_now_ns());
    LC_STORE(lane->closed_ns, 0);
    LC_STORE(lane->threshold, lc_ns_to_ticks(agent->threshold_ns, rate));
    LC_STORE(lane->sample_delay, lc_ns_to_ticks(agent->sample_delay_ns, rate));
    lc_long_work_open(lane, rate);
    LC_ADD(lane->generation, 1u);
    copy_thread_name(lane);
    lc_thread_lane_set_kind(lane, loop_kind);
}

bool lc_call_ours(PyObject *function, PyObject *argument)
{
    PyObject *ours = Py_NewRef(function);
    PyObject *result = argument != NULL ? PyObject_CallOneArg(ours, argument) : PyObject_CallNoArgs(ours);
    Py_DECREF(ours);
    return lc_raised_is_ours(result);
}

bool lc_call_ours_with(PyObject *function, uint32_t number)
{
    PyObject *argument = PyLong_FromUnsignedLong(number);
    const bool passed = argument == NULL ? lc_raised_is_ours(NULL) : lc_call_ours(function, argument);
    Py_XDECREF(argument);
    return passed;
}

bool lc_may_call_python(void)
{
    return Py_IsInitialized() && !Py_IsFinalizing() && PyGILState_GetThisThreadState() != NULL;
}

void lc_thread_lane_begin_turn(lc_lane *lane) { lc_turn_begin(&lc_the_agent.watchdog.lanes, lane); }

void lc_thread_lane_end_turn(lc_lane *lane) { lc_turn_end(&lc_the_agent.watchdog.lanes, lane); }

static bool has_gone(PyObject *reference)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *kept = NULL;
    const bool is_there = PyWeakref_GetRef(reference, &kept) > 0;
    Py_XDECREF(kept);
    return !is_there;
#else
    return PyWeakref_GET_OBJECT(reference) == Py_None;
#endif
}

PyObject *lc_thread_lane_scene(void)
{
    PyObject *held = NULL;
    if (PyContextVar_Get(lc_the_agent.scene_variable, Py_None, &held) != 0) {
        return NULL;
    }
    if (PyList_CheckExact(held) && PyList_GET_SIZE(held) == 2) {
        PyObject *life = PyList_GET_ITEM(held, 1);
        const bool is_over = life == Py_None || (PyWeakref_Check(life) && has_gone(life));
        Py_SETREF(held, Py_NewRef(is_over ? Py_None : PyList_GET_ITEM(held, 0)));
    }
    return held == Py_None ? (Py_DECREF(held), NULL) : held;
}

void lc_thread_lane_note_scene(void)
{
    lc_lane *lane = lc_thread_lane_peek();
    const lc_raised before = lc_raised_take();
    if (lane != NULL) {
        PyObject *scene = lc_thread_lane_scene();
        if (scene != NULL || PyErr_Occurred() == NULL) {
            LC_STORE(lane->scene, scene == NULL ? lc_thread_lane_title() : (uint64_t)(uintptr_t)scene);
        }
        Py_XDECREF(scene); /* the context keeps it while the work runs */
    }
    lc_raised_put_back(before);
}

static _Thread_local struct {
    PyObject *text;
    uint64_t generation; /* of the agent under which it was told */
} own_title __attribute__((tls_model("initial-exec")));

uint64_t lc_thread_lane_title(void)
{
    return own_title.generation == lc_the_agent.generation ? (uint64_t)(uintptr_t)own_title.text : 0u;
}

void lc_thread_lane_set_title(PyObject *title)
{
    PyObject *before = own_title.text;
    const uint64_t said = lc_thread_lane_title();
    own_title.text = Py_XNewRef(title);
    own_title.generation = lc_the_agent.generation;
    lc_lane *lane = lc_thread_lane_peek();
    const uint64_t scene = lane != NULL ? LC_LOAD(lane->scene) : 0u;
    if (lane != NULL && (scene == 0 || scene == said)) { /* the program has said nothing */
        LC_STORE(lane->scene, lc_thread_lane_title());
    }
    Py_XDECREF(before);
}

/* An armed engine starts when the first loop runs: a process without one pays for no thread and no file. */
static bool start_engine(lc_agent *agent)
{
    PyObject *hook = agent->on_first_lane;
    agent->on_first_lane = NULL;
    const bool ours = lc_call_ours(hook, NULL);
    Py_DECREF(hook);
    return ours;
}

lc_lane *lc_thread_lane_open(const char *loop_kind)
{
    lc_agent *agent = &lc_the_agent;
    if (lc_thread_is_ours) {
        lc_own_lane = (lc_thread_lane){NULL, agent->generation};
        return NULL;
    }
    if (!agent->running && agent->on_first_lane != NULL && !start_engine(agent)) {
        return NULL;
    }
    /* Also "none": the next call shall not search again. */
    lc_own_lane = (lc_thread_lane){NULL, agent->generation};
    if (!agent->running) {
        return NULL;
    }
    lc_lane *lane = find_lane(agent);
    if (lane == NULL) {
        lc_flight_count(&agent->flight, LC_COUNTER_lanes_refused, 1);
        return NULL;
    }
    const uint64_t generation = agent->generation;
    take_over(agent, lane, loop_kind);
    if (!LC_AGENT_RUNS(generation)) {
        return NULL; /* stopped while Python was asked for the thread's name */
    }
    if (!tie_to_thread(lane)) {
        LC_RELEASE(lane->state, LC_LANE_CLOSED);
        return NULL;
    }
    LC_RELEASE(lane->state, LC_LANE_ACTIVE);
    lc_own_lane.lane = lane;
    lc_fault_stack_give(); /* it may have been started by others, or before us */
    if (when_opened != NULL) {
        when_opened();
    }
    return lane;
}
