#include "probes/glib/glib.h"

#include <dlfcn.h>
#include <string.h>

#include "core/got/got.h"
#include "probes/hooks/hook_set.h"
#include "cpython/objects/raised.h"
#include "module/thread_lane.h"
#include "module/running_work.h"

typedef void closure_notify(void *data, void *closure); /* GClosureNotify */

/* Of libgobject-2.0; part of its ABI since 2.0. */
static struct {
    const char *(*signal_name)(unsigned signal);
    int (*main_depth)(void); /* libglib-2.0's: how many dispatches of main contexts the thread is in */
    void (*add_guards)(void *closure, void *before_data, closure_notify *before, void *after_data,
                       closure_notify *after);
} gobject;

/* In the first word of a GClosure (gclosure.h), which has room for one pair of guards. */
#define HAS_GUARDS (UINT32_C(1) << 16)

#define NESTED_MAX 16u

/* Of one thread: the handlers that run, each inside the one before; deeper ones are counted, and not seen. */
typedef struct {
    uint32_t depth;
    bool is_begun[NESTED_MAX];
    lc_running running[NESTED_MAX];
} handlers;

static _Thread_local handlers *own_handlers __attribute__((tls_model("initial-exec")));
static pthread_key_t handlers_key;

static void free_handlers(void *own)
{
    own_handlers = NULL;
    free(own);
}

static handlers *get_handlers(void)
{
    if (own_handlers == NULL) {
        own_handlers = lc_thread_memory(handlers_key, sizeof *own_handlers);
    }
    return own_handlers;
}

/* Whether the thread runs a loop (it is in a turn, or in a dispatch of a loop that ran before loopcanary
 * was installed) and no callback, whose name would count. */
static bool may_begin(const lc_lane *lane)
{
    return !lc_lane_in_callback(lane) && (lc_lane_in_turn(lane) || gobject.main_depth() > 0);
}

/* `name` is the signal's, a str that stays. */
static void before_handler(void *name, void *closure)
{
    handlers *own = get_handlers();
    if (own == NULL || own->depth++ >= NESTED_MAX) {
        return;
    }
    const uint32_t level = own->depth - 1u;
    lc_glib_input_handler(closure, name);
    PyObject *handler = lc_glib_handler_of(closure);
    lc_lane *lane = lc_storing_begin(lc_own_lane.generation) ? lc_own_lane.lane : NULL;
    own->is_begun[level] = lane != NULL && handler != NULL && may_begin(lane);
    if (own->is_begun[level]) {
        lc_running *running = &own->running[level];
        *running = (lc_running){.note = {.callable = (uint64_t)(uintptr_t)lc_inside_partials(handler),
                                         .signal = (uint64_t)(uintptr_t)name,
                                         .way = LC_WAY_HANDLER}};
        lc_running_begin_bare(running, lane);
    }
    lc_storing_end();
}

static void after_handler(void *Py_UNUSED(name), void *Py_UNUSED(closure))
{
    handlers *own = own_handlers;
    if (own == NULL || own->depth == 0 || --own->depth >= NESTED_MAX || !own->is_begun[own->depth]) {
        return;
    }
    (void)lc_storing_begin(lc_own_lane.generation);
    lc_running_end(&own->running[own->depth]);
    lc_storing_end();
}

/* of signals, by their numbers; under the GIL. Kept for ever: a lane may have the address of one */
static PyObject *names;

/* Borrowed; NULL without an exception: it cannot be had. */
static PyObject *name_of(unsigned signal)
{
    PyObject *number = PyLong_FromUnsignedLong(signal);
    PyObject *name = number != NULL ? PyDict_GetItemWithError(names, number) : NULL;
    if (number != NULL && name == NULL && !PyErr_Occurred()) {
        const char *text = gobject.signal_name(signal);
        PyObject *fresh = text != NULL ? PyUnicode_FromString(text) : NULL;
        if (fresh != NULL && PyDict_SetItem(names, number, fresh) == 0) {
            name = fresh;
        }
        Py_XDECREF(fresh);
    }
    Py_XDECREF(number);
    return name;
}

static void guard(unsigned signal, void *closure)
{
    uint32_t bits;
    if (closure == NULL || !PyGILState_Check()) {
        return;
    }
    memcpy(&bits, closure, sizeof bits);
    const lc_raised before = lc_raised_take();
    PyObject *name = (bits & HAS_GUARDS) == 0 ? name_of(signal) : NULL;
    lc_raised_put_back(before);
    if (name != NULL) {
        gobject.add_guards(closure, name, before_handler, name, after_handler);
    }
}

static bool is_hooked; /* under the GIL */

#define CONNECT(way, name, parameters, arguments)                                                            \
    static unsigned long hooked_##name##_##way parameters                                                    \
    {                                                                                                        \
        if (is_hooked) {                                                                                     \
            guard(signal, closure);                                                                          \
        }                                                                                                    \
        return name##_next[way] arguments;                                                                   \
    }

LC_HOOKS(CONNECT, unsigned long, g_signal_connect_closure_by_id,
         (void *instance, unsigned signal, unsigned detail, void *closure, int after),
         (instance, signal, detail, closure, after))

static lc_hooked_function connect_functions[] = {LC_HOOK_ROW_LATE(g_signal_connect_closure_by_id, NULL)};
static lc_hook_set connects = {.functions = connect_functions};

static bool learn(void)
{
    static bool has_key;
    /* Stays open: closures call back. Of a loaded object dlsym looks into what that is linked to as well:
     * libglib-2.0. */
    void *object = dlopen("libgobject-2.0.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (object == NULL) {
        return false;
    }
    const bool found = lc_symbol_find(object, "g_closure_add_marshal_guards", &gobject.add_guards) &&
                       lc_symbol_find(object, "g_main_depth", &gobject.main_depth) &&
                       lc_symbol_find(object, "g_signal_name", &gobject.signal_name);
    connect_functions[0].fallback = dlsym(object, "g_signal_connect_closure_by_id");
    has_key = has_key || pthread_key_create(&handlers_key, free_handlers) == 0;
    names = names != NULL ? names : PyDict_New();
    return found && has_key && names != NULL;
}

PyObject *lc_glib_hook_signals(PyObject *Py_UNUSED(module), PyObject *path)
{
    lc_got_object where;
    if (!lc_hook_where(path, &where)) {
        return NULL;
    }
    const bool known = learn();
    PyErr_Clear();
    is_hooked = known && lc_hook_set_add(&connects, where, 1) != NULL;
    return PyBool_FromLong(is_hooked);
}

PyObject *lc_glib_unhook_signals(PyObject *Py_UNUSED(module), PyObject *path)
{
    lc_got_object where;
    if (!lc_hook_where(path, &where)) {
        return NULL;
    }
    if (is_hooked) {
        is_hooked = false;
        lc_hook_set_remove(&connects, where);
    }
    Py_RETURN_NONE;
}
