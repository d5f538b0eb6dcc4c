
#include "core/lane/tally.h"
#include "cpython/names/work_words.h"
#include "probes/qt/qt.h"
#include "probes/qt/patch.h"

static lc_qt_library qt;
static bool is_installed; /* atomic; written under the GIL */

/* ---- iterations -------------------------------------------------------------------------- */

typedef bool (*process_events_function)(void *dispatcher, int flags);

static void hook_application(void);

/* A turn this long kept windows from being drawn, if they are drawn right after it. */
#define LONG_NS UINT64_C(50000000)

static uint64_t ns_between(const lc_qt_thread *thread, uint64_t begin, uint64_t end)
{
    return end > begin ? lc_ticks_to_ns(end - begin, LC_LOAD(thread->run.context.header->tick_ns_q32)) : 0u;
}

static void note_turn(lc_qt_thread *thread, const lc_lane *lane)
{
    const uint64_t begin = LC_LOAD(lane->turn_begin);
    const uint64_t end = lc_now_ticks();
    if (lc_lane_in_turn(lane) && ns_between(thread, begin, end) >= LONG_NS) {
        if (ns_between(thread, thread->busy_end, begin) >= LONG_NS) {
            thread->busy_begin = begin;
        }
        thread->busy_end = end;
    }
}

/* Since when the loop has been too busy to draw; now, if it is not. */
static uint64_t asked_ns(const lc_qt_thread *thread, const lc_lane *lane)
{
    const uint64_t now = lc_now_ticks();
    const uint64_t turn = LC_LOAD(lane->turn_begin);
    uint64_t asked = ns_between(thread, turn, now) >= LONG_NS ? turn : now;
    if (ns_between(thread, thread->busy_end, asked) < LONG_NS) {
        asked = thread->busy_begin;
    }
    return lc_now_ns() - ns_between(thread, asked, now);
}

/* What an inner iteration interrupts. */
typedef struct {
    lc_wait wait;
    uint32_t deliveries;
    uint64_t epoch;
    lc_qt_delivery delivery;
    bool was_in_turn;
    bool was_in_delivery;
    bool was_polled; /* the turn of a program that calls processEvents() again and again (probes/polled.py) */
} interrupted;

#define HIDE 18u             /* of QEvent::Type */
#define EVENT_LOOP_EXEC 0x20 /* of QEventLoop::ProcessEventsFlag: an iteration of exec() */

static interrupted enter_iteration(lc_qt_thread *thread)
{
    interrupted outer = {
        .deliveries = thread->deliveries, .epoch = thread->epoch, .delivery = thread->delivery};
    lc_lane *lane = lc_qt_thread_begin_storing(thread);
    if (lane != NULL) {
        outer.was_in_turn = lc_lane_in_turn(lane);
        outer.was_polled = outer.was_in_turn && thread->loops == 0 && !lc_lane_in_callback(lane);
        lc_thread_lane_set_kind(lane, "qt");
        if (lc_lane_in_callback(lane)) {
            outer.was_in_delivery = thread->epoch != 0 && LC_LOAD(lane->epoch) == thread->epoch;
            (void)lc_callback_end(&thread->run.context, lane);
        }
        lc_turn_end(&thread->run.context, lane);
        lc_turn_begin(&thread->run.context, lane);
        lc_storing_end();
    }
    outer.wait = lc_wait_exchange(thread->run);
    thread->loops++;
    thread->deliveries = 0;
    thread->epoch = 0;
    thread->hid = false;
    return outer;
}

static void leave_iteration(lc_qt_thread *thread, interrupted outer, int flags)
{
    const bool is_over = outer.was_polled && (thread->hid || (flags & EVENT_LOOP_EXEC) != 0);
    lc_wait_exchange(outer.wait);
    thread->loops--;
    thread->deliveries = outer.deliveries;
    thread->delivery = outer.delivery;
    thread->epoch = 0;
    lc_lane *lane = lc_qt_thread_begin_storing(thread);
    if (lane == NULL) {
        return;
    }
    note_turn(thread, lane);
    if (lc_lane_in_callback(lane)) {
        lc_lane_drop_callback(lane); /* begun and never ended: its time is not known */
    }
    lc_turn_end(&thread->run.context, lane);
    if (outer.was_in_turn && !is_over) {
        lc_turn_begin(&thread->run.context, lane);
    }
    if (outer.was_in_delivery) {
        lc_callback_begin(lane, outer.delivery.work, 0);
        thread->epoch = LC_LOAD(lane->epoch);
    }
    lc_storing_end();
}

static bool process_events(void *dispatcher, int flags)
{
    process_events_function next;
    *(void **)&next = lc_qt_patch_original(dispatcher, qt.process_events_index);
    if (__builtin_expect(!__atomic_load_n(&is_installed, __ATOMIC_ACQUIRE), 0)) {
        lc_qt_patch_take_back(dispatcher);
        return next(dispatcher, flags);
    }
    lc_qt_thread *thread = lc_qt_thread_get();
    if (thread == NULL) {
        return next(dispatcher, flags);
    }
    hook_application();
    lc_qt_thread_know(thread);
    const interrupted outer = enter_iteration(thread);
    const bool result = next(dispatcher, flags);
    leave_iteration(thread, outer, flags);
    return result;
}

/* ---- events ------------------------------------------------------------------------------ */

typedef bool (*notify_function)(void *application, void *receiver, void *event);

static uint16_t type_of(const void *event)
{
    uint16_t type = LC_QT_TYPE_UNKNOWN;
    if (qt.event_type_offset != 0) {
        memcpy(&type, (const char *)event + qt.event_type_offset, sizeof type);
    }
    return type;
}

/* The receiver's class is read now: it may be gone when its event is over. */
static lc_work_kind kind_of(void *receiver, uint16_t type)
{
    return (lc_work_kind){LC_KIND_QT | (uint64_t)(uintptr_t)lc_qt_class_of(receiver), type};
}

static void begin_delivery(lc_qt_thread *thread, void *receiver, const void *event, lc_work_kind *kind)
{
    const uint16_t type = type_of(event);
    thread->delivery = lc_qt_delivery_begin(receiver, event, type);
    lc_lane *lane = lc_qt_thread_begin_storing(thread);
    if (lane == NULL) {
        return;
    }
    if (!lc_lane_in_callback(lane)) {
        lc_turn_begin(&thread->run.context, lane);
        if (lc_qt_delivery_draws(&thread->delivery)) {
            thread->delivery.asked_ns = asked_ns(thread, lane);
        }
        lc_callback_begin(lane, thread->delivery.work, 0);
        thread->epoch = LC_LOAD(lane->epoch);
        if (__builtin_expect(lc_tally_is_on(lane), 0)) {
            *kind = kind_of(receiver, type);
        }
    }
    lc_storing_end();
}

static void end_delivery(lc_qt_thread *thread, lc_work_kind kind)
{
    lc_lane *lane = lc_qt_thread_begin_storing(thread);
    if (lane != NULL) {
        if (thread->epoch != 0 && LC_LOAD(lane->epoch) == thread->epoch) {
            const uint64_t begin = LC_LOAD(lane->begin);
            const uint64_t took = lc_callback_end(&thread->run.context, lane);
            if (__builtin_expect(kind.key != 0, 0) && lc_tally_is_on(lane)) {
                lc_tally_add(lane, kind, 0, begin, took);
            }
        }
        lc_storing_end();
    }
    thread->epoch = 0;
}

/* The widget for which a window's event is meant, and what of a window is painted: they say more than the
 * window does. */
static void rename_delivery(lc_qt_thread *thread, void *receiver, const void *event)
{
    if (!lc_qt_delivery_passes_on(&thread->delivery, receiver, type_of(event))) {
        return;
    }
    lc_lane *lane = lc_qt_thread_begin_storing(thread);
    if (lane != NULL) {
        if (thread->epoch != 0 && LC_LOAD(lane->epoch) == thread->epoch) {
            LC_RELEASE(lane->work, thread->delivery.work);
        }
        if (lc_qt_delivery_draws(&thread->delivery) && thread->delivery.asked_ns == 0) {
            thread->delivery.asked_ns = asked_ns(thread, lane);
        }
        lc_storing_end();
    }
}

/* A thread whose loop is not ours so far, and no delivery is around this one: Python code under it means that
 * Python code runs the loop, or sends an event where there is none. */
static void look_at_thread(lc_qt_thread *thread)
{
    if (lc_qt_thread_is_known(thread)) {
        return;
    }
    lc_qt_thread_pass_by(thread);
    void *dispatcher = lc_may_call_python() ? qt.thread_dispatcher(NULL) : NULL;
    if (dispatcher == NULL) {
        return;
    }
    if (!lc_qt_patch_is_laid(dispatcher)) {
        lc_qt_patch_forget(dispatcher); /* an earlier thread's application */
    }
    (void)lc_qt_patch_lay(dispatcher, qt.process_events_index, (void *)(uintptr_t)process_events);
    thread->asked = false; /* the lane comes with the next iteration */
}

/* A window has gone: what the program does from now on delays nobody in front of it. */
static void note_hidden(lc_qt_thread *thread, const void *receiver)
{
    const char *name = lc_qt_class_of(receiver);
    if (name == NULL || strstr(name, "Window") == NULL) {
        return;
    }
    thread->hid = true;
    lc_lane *lane = thread->loops == 0 ? lc_qt_thread_begin_storing(thread) : NULL;
    if (lane != NULL) {
        if (!lc_lane_in_callback(lane)) {
            lc_turn_end(&thread->run.context, lane);
        }
        lc_storing_end();
    }
}

static bool notify(void *application, void *receiver, void *event)
{
    notify_function next;
    *(void **)&next = lc_qt_patch_original(application, qt.notify_index);
    lc_qt_thread *thread = __atomic_load_n(&is_installed, __ATOMIC_ACQUIRE) ? lc_qt_thread_get() : NULL;
    if (thread == NULL || receiver == NULL || event == NULL) {
        return next(application, receiver, event);
    }
    if (__builtin_expect(type_of(event) == HIDE, 0)) {
        note_hidden(thread, receiver);
    }
    const bool is_watched = thread->run.lane != NULL && thread->loops > 0;
    const bool is_outermost = thread->deliveries++ == 0;
    lc_work_kind kind = {0};
    bool result;
    if (!is_watched) {
        if (is_outermost && thread->loops == 0) {
            look_at_thread(thread);
        }
        result = next(application, receiver, event);
    } else if (is_outermost) {
        begin_delivery(thread, receiver, event, &kind);
        result = next(application, receiver, event);
        end_delivery(thread, kind);
        lc_qt_delivery_end(&thread->delivery, &thread->spin);
    } else {
        rename_delivery(thread, receiver, event);
        result = next(application, receiver, event);
    }
    thread->deliveries--;
    return result;
}

/* ---- coming and going -------------------------------------------------------------------- */

static void hook_application(void)
{
    void *application = *qt.application;
    if (application != NULL && !lc_qt_patch_is_laid(application)) {
        (void)lc_qt_patch_lay(application, qt.notify_index, (void *)(uintptr_t)notify);
    }
}

static void hook_dispatcher(void)
{
    void *dispatcher = qt.application_dispatcher();
    if (dispatcher != NULL) {
        (void)lc_qt_patch_lay(dispatcher, qt.process_events_index, (void *)(uintptr_t)process_events);
    }
}

/* In the constructor of QCoreApplication: derived classes are not made yet, the dispatcher is. */
static void application_is_made(void)
{
    if (__atomic_load_n(&is_installed, __ATOMIC_ACQUIRE)) {
        void *dispatcher = qt.application_dispatcher();
        lc_qt_patch_forget(*qt.application);
        if (dispatcher != NULL) {
            lc_qt_patch_forget(dispatcher);
        }
        hook_dispatcher();
    }
}

static const char *prepare(const char *path)
{
    static bool prepared; /* under the GIL */
    const char *why_not = NULL;
    if (prepared) {
        return NULL;
    }
    if (!lc_qt_library_find(path, &qt, &why_not)) {
        return why_not;
    }
    if (!lc_qt_threads_prepare()) {
        return "no thread-specific memory is left (pthread_key_create)";
    }
    prepared = true;
    qt.add_pre_routine(application_is_made); /* stays: it does nothing while nothing is installed */
    return NULL;
}

PyObject *lc_qt_install(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *path, *seen;
    if (!PyArg_ParseTuple(args, "O&O", PyUnicode_FSConverter, &path, &seen)) {
        return NULL;
    }
    const char *why_not = prepare(PyBytes_AS_STRING(path));
    Py_DECREF(path);
    if (why_not != NULL) {
        return PyUnicode_FromString(why_not);
    }
    lc_qt_threads_seen_by(seen);
    if (!__atomic_exchange_n(&is_installed, true, __ATOMIC_SEQ_CST) && *qt.application != NULL) {
        hook_dispatcher();
        hook_application();
    }
    Py_RETURN_NONE;
}

PyObject *lc_qt_uninstall(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (__atomic_exchange_n(&is_installed, false, __ATOMIC_SEQ_CST)) {
        /* Dispatchers of other threads take theirs back at their next iteration. */
        void *dispatcher = *qt.application != NULL ? qt.application_dispatcher() : NULL;
        if (dispatcher != NULL) {
            lc_qt_patch_take_back(dispatcher);
        }
        if (*qt.application != NULL) {
            lc_qt_patch_take_back(*qt.application);
        }
        lc_qt_threads_seen_by(NULL);
    }
    Py_RETURN_NONE;
}
