/* loopcanary._native: the bindings. What they do is written where it is done. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/host/own_thread.h"
#include "module/agent.h"
#include "probes/asyncio/asyncio.h"
#include "module/bindings.h"
#include "module/bracket.h"
#include "probes/glib/glib.h"
#include "probes/hooks/loop_hooks.h"
#include "probes/hooks/patched_function.h"
#include "probes/qt/qt.h"
#include "module/quiet_thread.h"
#include "module/thread_lane.h"
#include "probes/hooks/wait_hook.h"

static PyObject *start(PyObject *Py_UNUSED(module), PyObject *args, PyObject *names)
{
    static char *keywords[] = {
        "path",          "facts",   "threshold_ns",       "sample_delay_ns",   "sample_interval_ns",
        "hang_ns",       "anr_ns",  "checkpoint",         "takes_keeper",      "stalls_per_minute",
        "notify_socket", "feed_ns", "exit_hung_ns",       "signals",           "boot_ns",
        "exit_ns",       "look_ns", "signal_patience_ns", "fault_patience_ns", NULL};
    PyObject *path, *checkpoint = NULL;
    int takes_keeper = 0;
    const char *facts, *notify_socket = NULL;
    Py_ssize_t facts_bytes;
    unsigned long long threshold, delay, interval, hang, anr, per_minute = 0, feed = 0, exit_hung = 0,
                                                              signals = 0, boot = 0, exits = 0, look = 0,
                                                              signal_patience = 0, fault_patience = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O&y#KKKKK|O&pKyKKKKKKKK", keywords, PyUnicode_FSConverter,
                                     &path, &facts, &facts_bytes, &threshold, &delay, &interval, &hang, &anr,
                                     PyUnicode_FSConverter, &checkpoint, &takes_keeper, &per_minute,
                                     &notify_socket, &feed, &exit_hung, &signals, &boot, &exits, &look,
                                     &signal_patience, &fault_patience)) {
        return NULL;
    }
    const lc_watchdog_settings settings = {
        .threshold_ns = threshold,
        .sample_interval_ns = interval,
        .tick_ns = lc_watchdog_tick_ns(threshold, delay),
        .park_ns = 1000000000u,
        .hang_ns = hang,
        .anr_ns = anr,
        .stalls_per_minute = per_minute,
        .notify_socket = notify_socket,
        .feed_ns = feed,
        .exit_hung_ns = exit_hung,
        .signals = signals,
        .signal_patience_ns = signal_patience,
        .fault_patience_ns = fault_patience,
        .boot_ns = boot,
        .exit_ns = exits,
        .look_ns = look,
    };
    const bool started = lc_agent_start(
        PyBytes_AS_STRING(path), checkpoint ? PyBytes_AS_STRING(checkpoint) : NULL, facts, facts_bytes,
        &settings, threshold, delay, takes_keeper ? LC_TAKES_KEEPER : LC_TAKES_DRAIN);
    Py_DECREF(path);
    Py_XDECREF(checkpoint);
    return started ? Py_NewRef(Py_None) : NULL;
}

static PyObject *stop(PyObject *Py_UNUSED(module), PyObject *args)
{
    int process_ends;
    double patience;
    if (!PyArg_ParseTuple(args, "pd", &process_ends, &patience)) {
        return NULL;
    }
    lc_agent_stop(process_ends, lc_deadline_after(patience));
    Py_RETURN_NONE;
}

static PyObject *forget_after_fork(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lc_agent_forget_after_fork();
    Py_RETURN_NONE;
}

static PyObject *obstacle(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    const char *reason = lc_agent_obstacle();
    return reason ? PyUnicode_FromString(reason) : Py_NewRef(Py_None);
}

static PyObject *pause_watchdog(PyObject *Py_UNUSED(module), PyObject *patience)
{
    const double seconds = PyFloat_AsDouble(patience);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(lc_agent_pause(lc_deadline_after(seconds)));
}

static PyObject *resume_watchdog(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return lc_agent_resume() ? Py_NewRef(Py_None) : NULL;
}

static PyObject *on_first_lane(PyObject *Py_UNUSED(module), PyObject *hook)
{
    if (hook != Py_None && !PyCallable_Check(hook)) {
        PyErr_SetString(PyExc_TypeError, "on_first_lane() takes a callable or None");
        return NULL;
    }
    Py_XSETREF(lc_the_agent.on_first_lane, hook == Py_None ? NULL : Py_NewRef(hook));
    if (!lc_the_agent.running) {
        lc_the_agent.generation++; /* threads that were told "no lane" ask again */
    }
    Py_RETURN_NONE;
}

static PyObject *exit_begins(PyObject *Py_UNUSED(module), PyObject *args)
{
    int was_interrupted, handles_interrupts;
    if (!PyArg_ParseTuple(args, "pp", &was_interrupted, &handles_interrupts)) {
        return NULL;
    }
    if (lc_the_agent.running) {
        atomic_fetch_or(&lc_the_agent.watchdog.outside.exit,
                        LC_EXIT_BEGUN | (was_interrupted ? LC_EXIT_INTERRUPTED : 0u) |
                            (handles_interrupts ? LC_EXIT_INTERRUPTIBLE : 0u));
        lc_bell_ring(&lc_the_agent.watchdog.bell);
    }
    Py_RETURN_NONE;
}

static PyObject *is_running(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(lc_the_agent.running);
}

/* The bell outlives the agent: it is static, and a stop rings it. */
static PyObject *wait_for_news(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned int seen;
    double timeout;
    if (!PyArg_ParseTuple(args, "Id", &seen, &timeout)) {
        return NULL;
    }
    lc_bell *bell = &lc_the_agent.watchdog.news;
    const uint64_t deadline = lc_deadline_after(timeout);
    Py_BEGIN_ALLOW_THREADS
    lc_bell_wait(bell, seen, deadline);
    lc_own_rights_follow();
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLong(atomic_load_explicit(bell, memory_order_acquire));
}

static PyObject *wake(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lc_bell_ring(&lc_the_agent.watchdog.news);
    Py_RETURN_NONE;
}

/* The slot of this number, if it holds the stall of this serial and the watchdog has completed it. */
static lc_slot *complete_slot(PyObject *args)
{
    unsigned long long index, serial;
    if (!PyArg_ParseTuple(args, "KK", &index, &serial)) {
        return NULL;
    }
    if (!lc_the_agent.running || index >= LC_SLOT_COUNT ||
        index >= LC_ACQUIRE(lc_the_agent.flight.header->sections[LC_SECTION_SLOTS].used)) {
        return NULL;
    }
    lc_slot *slot = lc_flight_slot(&lc_the_agent.flight, index);
    return LC_ACQUIRE(slot->state) == LC_SLOT_ENDED && LC_LOAD(slot->serial) == serial ? slot : NULL;
}

static PyObject *slot_is_complete(PyObject *Py_UNUSED(module), PyObject *args)
{
    const lc_slot *slot = complete_slot(args);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(slot != NULL);
}

static PyObject *release_slot(PyObject *Py_UNUSED(module), PyObject *args)
{
    lc_slot *slot = complete_slot(args);
    if (slot != NULL) {
        LC_RELEASE(slot->state, LC_SLOT_FREE);
    }
    return PyErr_Occurred() ? NULL : PyBool_FromLong(slot != NULL);
}

static PyObject *set_facts(PyObject *Py_UNUSED(module), PyObject *json)
{
    char *text;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(json, &text, &length) != 0) {
        return NULL;
    }
    return PyBool_FromLong(lc_the_agent.running &&
                           lc_flight_set_facts(&lc_the_agent.flight, text, (size_t)length));
}

static PyObject *learn_asyncio(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBool_FromLong(lc_the_agent.running && lc_cpython_source_learn_asyncio(&lc_the_agent.source));
}

static PyObject *use_scenes(PyObject *Py_UNUSED(module), PyObject *variable)
{
    if (!PyContextVar_CheckExact(variable)) {
        PyErr_SetString(PyExc_TypeError, "use_scenes() takes a ContextVar");
        return NULL;
    }
    if (lc_the_agent.running) {
        Py_XSETREF(lc_the_agent.scene_variable, Py_NewRef(variable));
    }
    Py_RETURN_NONE;
}

/* The caller keeps the str alive until it sets another: the lane holds its address only. */
static PyObject *set_scene(PyObject *Py_UNUSED(module), PyObject *scene)
{
    lc_lane *lane = lc_thread_lane_peek();
    if (lane != NULL) {
        LC_STORE(lane->scene, PyUnicode_Check(scene) ? (uint64_t)(uintptr_t)scene : lc_thread_lane_title());
    }
    Py_RETURN_NONE;
}

static PyObject *set_title(PyObject *Py_UNUSED(module), PyObject *title)
{
    lc_thread_lane_set_title(PyUnicode_Check(title) ? title : NULL);
    Py_RETURN_NONE;
}

static PyObject *allow(PyObject *Py_UNUSED(module), PyObject *nanoseconds)
{
    const unsigned long long ns = PyLong_AsUnsignedLongLong(nanoseconds);
    if (ns == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    lc_lane *lane = lc_thread_lane_peek();
    if (lane != NULL && lc_lane_in_callback(lane)) {
        lc_lane_allow(lane, lc_ns_to_ticks(ns, LC_LOAD(lc_the_agent.flight.header->tick_ns_q32)));
    }
    Py_RETURN_NONE;
}

/* work_begin(name) -> token | None; the token goes to work_end, on the same thread. */
static PyObject *work_begin(PyObject *Py_UNUSED(module), PyObject *name)
{
    lc_lane *lane = lc_thread_lane_get("thread");
    if (lane == NULL && PyErr_Occurred()) {
        return NULL;
    }
    const lc_bracket bracket = lc_bracket_begin(lane, (uint64_t)(uintptr_t)name, 0);
    if (bracket.lane == NULL) {
        Py_RETURN_NONE;
    }
    if (lc_the_agent.scene_variable != NULL) {
        lc_thread_lane_note_scene();
    }
    return Py_BuildValue("KKKi", (unsigned long long)(uintptr_t)bracket.lane,
                         (unsigned long long)bracket.generation, (unsigned long long)bracket.epoch,
                         bracket.own_turn);
}

static PyObject *work_end(PyObject *Py_UNUSED(module), PyObject *token)
{
    unsigned long long lane, generation, epoch;
    int own_turn;
    if (!PyArg_ParseTuple(token, "KKKi", &lane, &generation, &epoch, &own_turn)) {
        return NULL;
    }
    if (LC_AGENT_RUNS(generation)) { /* an old token ends nothing */
        lc_lane *began = (lc_lane *)(uintptr_t)lane;
        if (lc_thread_lane_peek() == began) {
            lc_bracket_end_late((lc_bracket){began, generation, epoch, own_turn != 0});
        } else {
            /* Lanes are their threads': the owner closes it at its next begin. (A generator that was begun
             * on one thread and closed on another.) */
            LC_STORE(began->abandoned, epoch);
        }
    }
    Py_RETURN_NONE;
}

static PyObject *clock_kind(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    static const char *const names[] = {"monotonic", "tsc", "cntvct"};
    return PyUnicode_FromString(names[lc_the_agent.running ? lc_clock_chosen : lc_clock_choose()]);
}

static PyMethodDef methods[] = {
    {"start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS,
     "Creates the flight file and starts the watchdog."},
    {"stop", stop, METH_VARARGS, "stop(process_ends, patience_s): ends the watchdog; the file stays."},
    {"forget_after_fork", forget_after_fork, METH_NOARGS,
     "In a forked child: lets go of the parent's engine."},
    {"obstacle", obstacle, METH_NOARGS, "Why the engine cannot start in this process; None where it can."},
    {"pause", pause_watchdog, METH_O,
     "pause(patience_s) -> int: ends our native threads; lanes and open stalls stay. How many ended in "
     "time."},
    {"resume", resume_watchdog, METH_NOARGS, "Starts the watchdog's thread again. OSError."},
    {"on_first_lane", on_first_lane, METH_O,
     "on_first_lane(hook | None): called once, without arguments, when a loop runs and the engine does not."},
    {"exit_begins", exit_begins, METH_VARARGS,
     "exit_begins(interrupted, handles_interrupts): the main thread's program is over; threads and exit "
     "functions may go on."},
    {"is_running", is_running, METH_NOARGS, "Whether the native engine watches this process."},
    {"wait_for_news", wait_for_news, METH_VARARGS,
     "wait_for_news(seen, timeout_s) -> int: sleeps until the count of news differs from seen; no GIL."},
    {"wake", wake, METH_NOARGS, "Makes wait_for_news return."},
    {"slot_is_complete", slot_is_complete, METH_VARARGS, "slot_is_complete(index, serial) -> bool"},
    {"release_slot", release_slot, METH_VARARGS,
     "release_slot(index, serial) -> bool: what it holds is stored elsewhere."},
    {"spare_addresses", lc_spare_addresses_py, METH_NOARGS, "See agent.h."},
    {"set_facts", set_facts, METH_O, "set_facts(json): stores the session's facts."},
    {"learn_asyncio", learn_asyncio, METH_NOARGS, "Finds where asyncio keeps names; asyncio is imported."},
    {"use_scenes", use_scenes, METH_O,
     "use_scenes(variable): note this ContextVar's value at each callback."},
    {"set_scene", set_scene, METH_O, "set_scene(str | None): the scene of the calling thread's work."},
    {"set_title", set_title, METH_O,
     "set_title(str | None): the calling thread's scene where it has no other."},
    {"allow", allow, METH_O, "allow(ns): the running callback may take this long before it is a stall."},
    {"work_begin", work_begin, METH_O, "work_begin(name) -> token | None"},
    {"work_end", work_end, METH_O, "work_end(token)"},
    {"call_tree", lc_call_tree_of, METH_VARARGS, "Rows of calls of words: module/keeper/call_tree.c."},
    {"stalls_ended", lc_stalls_ended, METH_NOARGS, "See agent.h."},
    {"clock_kind", clock_kind, METH_NOARGS, "What ticks are here: tsc, cntvct or monotonic."},
    {"gc_stamp", (PyCFunction)(void (*)(void))lc_gc_stamp, METH_FASTCALL, "For gc.callbacks."},
    {"open_keeper", lc_open_keeper, METH_O, "open_keeper(path) -> KeeperPage: see keeper/page.c."},
    {"fail_exit", lc_fail_exit, METH_O, "fail_exit(status): replaces an exit status of 0."},
    {"noted_end", lc_noted_end, METH_O,
     "noted_end(function): the function, and the flight file says that it ends."},
    {"asyncio_handle_method", lc_asyncio_handle_method, METH_VARARGS, "See probes/asyncio/asyncio.h."},
    {"asyncio_handle_forget", lc_asyncio_handle_forget, METH_O, "See probes/asyncio/asyncio.h."},
    {"asyncio_loop_method", lc_asyncio_loop_method, METH_VARARGS, "See probes/asyncio/asyncio.h."},
    {"asyncio_loop_forget", lc_asyncio_loop_forget, METH_O, "See probes/asyncio/asyncio.h."},
    {"start_thread", lc_start_thread, METH_O, "See quiet_thread.h."},
    {"join_thread", lc_join_thread, METH_VARARGS, "See quiet_thread.h."},
    {"learn_trio", lc_learn_trio, METH_O, "See probes/trio/run.c."},
    {"hook_waits", lc_hook_waits, METH_O, "See wait_hook.h."},
    {"unhook_waits", lc_unhook_waits, METH_O, "See wait_hook.h."},
    {"hook_sleeps", lc_hook_sleeps, METH_O, "See wait_hook.h."},
    {"unhook_sleeps", lc_unhook_sleeps, METH_O, "See wait_hook.h."},
    {"hook_answers", lc_hook_answers, METH_O, "See probes/answers/hook.c."},
    {"unhook_answers", lc_unhook_answers, METH_O, "See probes/answers/hook.c."},
    {"asgi_root", lc_asgi_root, METH_O, "See probes/asgi/route.c."},
    {"asgi_route", lc_asgi_route, METH_VARARGS, "See probes/asgi/route.c."},
    {"answers_gate", lc_answers_gate, METH_VARARGS, "See probes/answers/hook.c."},
    {"answers_behind_tls", lc_answers_behind_tls, METH_NOARGS, "See probes/answers/hook.c."},
    {"answer_handled", lc_answer_handled, METH_O, "See probes/answers/hook.c."},
    {"answer_named", lc_answer_named, METH_VARARGS, "See probes/answers/hook.c."},
    {"answers", lc_read_answers, METH_NOARGS, "See probes/answers/hook.c."},
    {"hook_uvloop", lc_hook_uvloop, METH_VARARGS, "See probes/uvloop/hooks.c."},
    {"unhook_uvloop", lc_unhook_uvloop, METH_NOARGS, "See probes/uvloop/hooks.c."},
    {"hook_epoll_wait", lc_hook_epoll_wait, METH_O, "See wait_hook.h."},
    {"unhook_epoll_wait", lc_unhook_epoll_wait, METH_NOARGS, "See wait_hook.h."},
    {"qt_install", lc_qt_install, METH_VARARGS, "See probes/qt/qt.h."},
    {"qt_uninstall", lc_qt_uninstall, METH_NOARGS, "See probes/qt/qt.h."},
    {"qt_listen", lc_qt_listen, METH_O, "See probes/qt/qt.h."},
    {"glib_hook", lc_glib_hook, METH_NOARGS, "See probes/glib/glib.h."},
    {"glib_unhook", lc_glib_unhook, METH_NOARGS, "See probes/glib/glib.h."},
    {"glib_hook_signals", lc_glib_hook_signals, METH_O, "See probes/glib/glib.h."},
    {"glib_unhook_signals", lc_glib_unhook_signals, METH_O, "See probes/glib/glib.h."},
    {"glib_listen", lc_glib_listen, METH_VARARGS, "See probes/glib/glib.h."},
    {"glib_run", lc_glib_run, METH_VARARGS, "See probes/glib/glib.h."},
    {"glib_source", lc_glib_source, METH_VARARGS, "See probes/glib/glib.h."},
    {"tk_learn", lc_tk_learn, METH_O, "See probes/tk/tk.c, as of all of tk_*."},
    {"tk_end", lc_tk_end, METH_NOARGS, ""},
    {"tk_shown", lc_tk_shown, METH_O, ""},
    {"tk_updated", lc_tk_updated, METH_NOARGS, ""},
    {"tk_input", lc_tk_input, METH_NOARGS, ""},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    /* What is patched and counted here is the process's. From 3.12 on the slot below says so by itself.
     * Hence statics in place of module state: toolkits call our hooks with no module at hand, and patches
     * may outlive the module. What a static keeps of Python's is let go of at uninstall, or its comment
     * says why not. */
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "loopcanary._native watches the main interpreter only");
        return -1;
    }
    lc_clock_choose(); /* and the first pairing of the clocks */
    int (*const add[])(PyObject *) = {lc_turn_select_add,   lc_loop_hooks_add,    lc_trio_run_add,
                                      lc_gevent_tracer_add, lc_other_process_add, lc_patched_function_add,
                                      lc_keeper_page_add,   lc_keeper_line_add,   lc_calls_add,
                                      lc_start_add,         lc_patches_add};
    int failed = 0;
    for (size_t i = 0; failed == 0 && i < sizeof add / sizeof *add; i++) {
        failed = add[i](module);
    }
    return failed;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "loopcanary._native",
    .m_doc = "The native engine: lanes, watchdog and walker. Internal.",
    .m_methods = methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
