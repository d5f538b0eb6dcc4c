#include "spin_look.h"

#include "agent.h"
#include "spin_pace.h"
#include "tally.h"
#include "thread_lane.h"
#include "wait_hook.h"
#include "work.h"

#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS UINT64_C(1000000000)
enum {
    CANDIDATES = 32,
    PARTIALS_MAX = 8,
    EXAMINED_MAX = 64, /* of one turn */
    PROOFS_LEAST = 4,
    ROUNDS_LEAST = 1000, /* fewer are a program that computes piece by piece */
    AGAIN = 10           /* it is told anew when it has gone on for so many times as long */
};

typedef struct {
    uint64_t identity;
    uint32_t seen; /* in the turn that is looked at */
    uint32_t seen_before;
    uint32_t proofs;
} candidate;

typedef struct {
    uint64_t agent; /* generations of what it is about */
    uint64_t lane;
    uint64_t turn;  /* the epoch of the turn that is looked at; 0: none yet */
    uint32_t waits; /* lc_wait_looks() in it */
    uint32_t examined;
    uint32_t examined_before;
    uint32_t looks; /* since begin_ns */
    bool has_event;
    bool is_ripe;
    uint64_t begin_ns;
    uint64_t now_ns;
    uint64_t callbacks; /* of the lane at begin_ns */
    uint64_t limit_ns;
    uint32_t count;
    candidate candidates[CANDIDATES];
} spin_watch;

static spin_watch watches[LC_LANE_COUNT];

static size_t index_of(const lc_lane *lane)
{
    const char *first = (const char *)lc_flight_lane(&lc_the_agent.flight, 0);
    return (size_t)((const char *)lane - first) / LC_LANE_BYTES;
}

void lc_spin_look_at(const lc_lane *lane)
{
    lc_spin_pace_want(&lc_the_agent.watchdog.watches[index_of(lane)].pace, lane);
}

/* ---- what it is ---------------------------------------------------------------------------- */

static uint64_t mixed(const void *object, const void *function)
{
    const uint64_t one = (uint64_t)(uintptr_t)object, other = (uint64_t)(uintptr_t)function;
    return one * UINT64_C(0x9E3779B97F4A7C15) ^ other;
}

static PyObject *inside_partials(PyObject *callable)
{
    const lc_asyncio_facts *asyncio = &lc_the_agent.source.asyncio;
    const bool learned = atomic_load_explicit(&asyncio->learned, memory_order_acquire);
    for (int depth = 0; learned && depth < PARTIALS_MAX; depth++) {
        if ((uint64_t)(uintptr_t)Py_TYPE(callable) != asyncio->partial_type) {
            break;
        }
        callable = *(PyObject **)((char *)callable + asyncio->partial_function);
    }
    return callable;
}

uint64_t lc_spin_identity(PyObject *callable)
{
    const void *task = lc_task_of(&lc_the_agent.source, callable);
    if (task != NULL) {
        return (uint64_t)(uintptr_t)task;
    }
    PyObject *inner = inside_partials(callable);
    if (PyMethod_Check(inner)) {
        return mixed(PyMethod_GET_SELF(inner), PyMethod_GET_FUNCTION(inner));
    }
    if (PyCFunction_CheckExact(inner)) {
        return mixed(PyCFunction_GET_SELF(inner), (const void *)((PyCFunctionObject *)inner)->m_ml);
    }
    return (uint64_t)(uintptr_t)inner;
}

/* ---- a look -------------------------------------------------------------------------------- */

static bool is_of(const spin_watch *watch, const lc_lane *lane)
{
    return watch->agent == lc_the_agent.generation && watch->lane == LC_LOAD(lane->generation);
}

/* Whether each wait since the last look was one without patience. */
static bool never_waited(const spin_watch *watch, const lc_lane *lane)
{
    const uint64_t turns = (LC_LOAD(lane->turn_epoch) - watch->turn) / 2u;
    return watch->turn != 0 && turns == (uint64_t)(lc_wait_looks() - watch->waits);
}

static void begin_anew(spin_watch *watch, const lc_lane *lane)
{
    watch->count = watch->looks = 0;
    watch->begin_ns = watch->now_ns;
    watch->callbacks = LC_LOAD(lane->callbacks);
}

/* Who was not there at the last look is no candidate any more. */
static void settle(spin_watch *watch)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < watch->count; i++) {
        candidate each = watch->candidates[i];
        if (each.seen != 0) {
            each.proofs += each.seen > 1u || !watch->has_event ? 1u : 0u;
            each.seen_before = each.seen;
            each.seen = 0;
            watch->candidates[kept++] = each;
        }
    }
    watch->count = kept;
}

static void begin_look(spin_watch *watch, const lc_lane *lane)
{
    watch->now_ns = lc_now_ns();
    const bool same = is_of(watch, lane);
    if (!same || !never_waited(watch, lane)) {
        *watch = (spin_watch){.agent = lc_the_agent.generation, .lane = LC_LOAD(lane->generation),
                              .now_ns = watch->now_ns, .limit_ns = SPIN_NS};
    }
    settle(watch);
    if (watch->count == 0) {
        begin_anew(watch, lane);
    }
    watch->looks++;
    watch->examined_before = watch->examined;
    watch->examined = 0;
    watch->has_event = false;
    watch->is_ripe = watch->now_ns - watch->begin_ns > watch->limit_ns;
    watch->turn = LC_LOAD(lane->turn_epoch);
    watch->waits = lc_wait_looks();
}

/* The watch, in the turn that is looked at; NULL: nothing to note. */
static spin_watch *look(lc_lane *lane)
{
    spin_watch *watch = &watches[index_of(lane)];
    if (lc_wait_looks() == 0) {
        return NULL; /* the loop has just waited */
    }
    if (!is_of(watch, lane) || watch->turn != LC_LOAD(lane->turn_epoch)) {
        begin_look(watch, lane);
    }
    if (watch->examined == EXAMINED_MAX) {
        /* A turn so young is tallied for nobody else: not yet for a burst. */
        if (lc_now_ticks() - LC_LOAD(lane->turn_begin) < LC_LOAD(lane->sample_delay) / 2u) {
            lc_tally_stop(lane);
        }
        return NULL;
    }
    watch->examined++;
    return watch;
}

static candidate *candidate_of(spin_watch *watch, uint64_t identity)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->candidates[i].identity == identity) {
            return &watch->candidates[i];
        }
    }
    if (watch->looks > 1u || watch->count == CANDIDATES) {
        return NULL;
    }
    candidate *fresh = &watch->candidates[watch->count++];
    *fresh = (candidate){.identity = identity};
    return fresh;
}

/* ---- what is told -------------------------------------------------------------------------- */

static int raise_it(void *exception)
{
    PyObject *value = exception;
    PyErr_SetObject((PyObject *)Py_TYPE(value), value);
    Py_DECREF(value);
    return -1;
}

/* The program's own exception came up in our call (a signal's handler): it comes up again at the thread's next
 * instruction. Handlers run on the main thread only; what other threads get is asked of them by its type. */
static void put_off(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if ((pid_t)syscall(SYS_gettid) != getpid()) {
        PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), type);
    } else if (value != NULL && Py_AddPendingCall(raise_it, Py_NewRef(value)) != 0) {
        Py_DECREF(value);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* The engine may stop meanwhile: the lane is not looked at afterwards. */
static void tell(spin_watch *watch, uint64_t rounds, PyObject *work, PyObject *spins)
{
    PyObject *told = Py_BuildValue("(OKKK)", work, (unsigned long long)watch->begin_ns,
                                   (unsigned long long)watch->now_ns, (unsigned long long)rounds);
    watch->count = 0;
    watch->is_ripe = false;
    watch->limit_ns *= AGAIN;
    if (told == NULL) {
        PyErr_Clear();
    } else if (!lc_call_ours(spins, told)) {
        put_off();
    }
    Py_XDECREF(told);
}

void lc_spin_look_note(lc_lane *lane, uint64_t identity, PyObject *work, PyObject *spins)
{
    spin_watch *watch = look(lane);
    candidate *it = watch != NULL ? candidate_of(watch, identity) : NULL;
    if (it == NULL) {
        return;
    }
    it->seen++;
    if (!watch->is_ripe || it->proofs < PROOFS_LEAST || it->proofs < watch->looks / 2u || spins == NULL) {
        return;
    }
    const uint64_t callbacks = LC_LOAD(lane->callbacks) - watch->callbacks;
    const uint64_t rounds = callbacks * it->seen_before / watch->examined_before;
    if (rounds >= ROUNDS_LEAST) {
        tell(watch, rounds, work, spins);
    }
}

void lc_spin_look_note_event(lc_lane *lane)
{
    spin_watch *watch = look(lane);
    if (watch != NULL) {
        watch->has_event = true;
    }
}
