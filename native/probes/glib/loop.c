#include "probes/glib/glib.h"

#include <dlfcn.h>
#include <string.h>

#include "core/got/got.h"
#include "module/running_work.h"
#include "probes/hooks/loop_hooks.h"
#include "probes/hooks/patched_function.h"
#include "probes/hooks/wait_hook.h"

typedef int poll_function(void *descriptors, unsigned count, int timeout_ms); /* GPollFunc */

/* Of libglib-2.0; part of its ABI since 2.0. */
static struct {
    void *(*get_default)(void);
    poll_function *(*get_poll)(void *context);
    void (*set_poll)(void *context, poll_function *poll);
    void *(*context_of)(void *main_loop);
    void *(*keep)(void *context);
    void (*let_go)(void *context);
} glib;

/* A poll function does not get its context, so there is one of ours for each different function that a
 * context had. next_poll never changes, as threads may be inside. */
#define WAYS 4u
static poll_function *next_poll[WAYS];

#define POLL(way)                                                                                            \
    static int poll_##way(void *descriptors, unsigned count, int timeout_ms)                                 \
    {                                                                                                        \
        lc_glib_input_end();                                                                                 \
        lc_wait_told_begin();                                                                                \
        const int ready = next_poll[way](descriptors, count, timeout_ms);                                    \
        lc_wait_told_end();                                                                                  \
        return ready;                                                                                        \
    }

POLL(0)
POLL(1)
POLL(2)
POLL(3)

static poll_function *const our_polls[WAYS] = {poll_0, poll_1, poll_2, poll_3};

/* The index among our functions; WAYS: it is another one. */
static unsigned way_of(poll_function *poll)
{
    unsigned way = 0;
    while (way < WAYS && our_polls[way] != poll) {
        way++;
    }
    return way;
}

/* Our function that calls `original`; NULL: all of ours call others. */
static poll_function *poll_before(poll_function *original)
{
    for (unsigned way = 0; way < WAYS; way++) {
        if (next_poll[way] == NULL) {
            next_poll[way] = original;
        }
        if (next_poll[way] == original) {
            return our_polls[way];
        }
    }
    return NULL;
}

#define CONTEXTS_MAX 16u

static void *hooked[CONTEXTS_MAX]; /* each kept by a reference; under the GIL */
static unsigned hooked_count;

static void unhook(void *context)
{
    const unsigned way = way_of(glib.get_poll(context));
    if (way < WAYS) {
        glib.set_poll(context, next_poll[way]);
    }
    glib.let_go(context);
}

static void hook(void *context)
{
    poll_function *found = context != NULL ? glib.get_poll(context) : NULL;
    if (found == NULL || way_of(found) < WAYS) {
        return;
    }
    poll_function *ours = poll_before(found);
    if (ours == NULL) {
        return;
    }
    if (hooked_count == CONTEXTS_MAX) { /* loops come and go: the oldest but the default one goes */
        unhook(hooked[1]);
        memmove(&hooked[1], &hooked[2], (CONTEXTS_MAX - 2u) * sizeof *hooked);
        hooked_count--;
    }
    hooked[hooked_count++] = glib.keep(context);
    glib.set_poll(context, ours);
}

static bool learn(void)
{
    void *object = dlopen("libglib-2.0.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (object == NULL) {
        return false;
    }
    const bool found = lc_symbol_find(object, "g_main_context_default", &glib.get_default) &&
                       lc_symbol_find(object, "g_main_context_get_poll_func", &glib.get_poll) &&
                       lc_symbol_find(object, "g_main_context_set_poll_func", &glib.set_poll) &&
                       lc_symbol_find(object, "g_main_loop_get_context", &glib.context_of) &&
                       lc_symbol_find(object, "g_main_context_ref", &glib.keep) &&
                       lc_symbol_find(object, "g_main_context_unref", &glib.let_go);
    if (!found) {
        dlclose(object);
        glib.get_default = NULL;
    }
    return found; /* what is hooked must not be unloaded: the object stays open */
}

PyObject *lc_glib_hook(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (glib.get_default == NULL && !learn()) {
        Py_RETURN_FALSE;
    }
    hook(glib.get_default());
    Py_RETURN_TRUE;
}

PyObject *lc_glib_unhook(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    while (hooked_count > 0) {
        unhook(hooked[--hooked_count]);
    }
    Py_RETURN_NONE;
}

static void hook_run(void *value, bool is_context)
{
    if (glib.get_default != NULL && hooked_count > 0 && value != NULL) {
        hook(is_context ? value : glib.context_of(value));
    }
}

static const char kind[] = "glib";

static PyTypeObject *boxed_type; /* gi's; NULL: not known */

/* PyGBoxed of PyGObject's public header pygobject-types.h: the value comes right after the object's head. */
static void *boxed_value(PyObject *object)
{
    if (boxed_type == NULL || !PyObject_TypeCheck(object, boxed_type) ||
        boxed_type->tp_basicsize < (Py_ssize_t)(sizeof(PyObject) + 2 * sizeof(void *))) {
        return NULL;
    }
    void *value;
    memcpy(&value, (const char *)object + sizeof(PyObject), sizeof value);
    return value;
}

enum { ANY_RUN, MAIN_LOOP_RUN, CONTEXT_RUN };

static PyObject *call_run(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    if (patch->extra != NULL && !lc_call_ours(patch->extra, NULL)) {
        return NULL;
    }
    const lc_lane *lane = lc_thread_lane_get(kind);
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : lc_patched_call_original(patch, args, count, names);
    }
    if (patch->role != ANY_RUN && PyVectorcall_NARGS(count) > 0) {
        hook_run(boxed_value(args[0]), patch->role == CONTEXT_RUN);
    }
    lc_running *work = lc_running_open(lane);
    const lc_loop_run run = lc_loop_run_begin(kind);
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_loop_run_end(run);
    if (work != NULL) {
        lc_running_go_on(work);
    }
    return result;
}

PyObject *lc_glib_run(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *seen, *boxed;
    int is_context;
    if (!PyArg_ParseTuple(args, "OOOp", &original, &seen, &boxed, &is_context)) {
        return NULL;
    }
    if (PyType_Check(boxed)) {
        Py_XSETREF(boxed_type, (PyTypeObject *)Py_NewRef(boxed));
    }
    const int role = boxed == Py_None ? ANY_RUN : is_context ? CONTEXT_RUN : MAIN_LOOP_RUN;
    return lc_patched_function_new(call_run, original, seen, role);
}

static PyObject *call_source(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    lc_glib_input_end(); /* calls Python: the engine may stop meanwhile */
    lc_lane *lane = lc_thread_lane_get(kind);
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : lc_patched_call_original(patch, args, count, names);
    }
    lc_running running = {.note = {.callable = (uint64_t)(uintptr_t)lc_inside_partials(patch->original),
                                   .way = (uint64_t)patch->role}};
    const uint64_t begin_ns = patch->extra != NULL ? lc_now_ns() : 0;
    lc_running_begin(&running, lane);
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_running_end(&running);
    return lc_patched_tell_ran(patch, begin_ns, result);
}

PyObject *lc_glib_source(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function, *ran, *partial;
    const char *way;
    if (!PyArg_ParseTuple(args, "OsOO!", &function, &way, &ran, &PyType_Type, &partial)) {
        return NULL;
    }
    lc_learn_partial((PyTypeObject *)partial);
    return lc_patched_function_new(call_source, function, ran == Py_None ? NULL : ran,
                                   strcmp(way, "idle") == 0 ? LC_WAY_IDLE : LC_WAY_TIMEOUT);
}
