#include "probes/glib/context.h"

#include <dlfcn.h>
#include <string.h>

#include "core/got/symbol.h"
#include "probes/glib/input.h"
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

/* ---- the poll function ------------------------------------------------------------------- */

/* It is not told for which context it is called: one for each function that was found in one. What it leads to never
 * changes: threads may be inside. */
#define WAYS 4u
static poll_function *next_poll[WAYS];

#define POLL(way)                                                               \
    static int poll_##way(void *descriptors, unsigned count, int timeout_ms)   \
    {                                                                           \
        lc_glib_input_end();                                                    \
        lc_wait_told_begin();                                                   \
        const int ready = next_poll[way](descriptors, count, timeout_ms);       \
        lc_wait_told_end();                                                     \
        return ready;                                                           \
    }

POLL(0) POLL(1) POLL(2) POLL(3)

static poll_function *const our_polls[WAYS] = {poll_0, poll_1, poll_2, poll_3};

/* WAYS: it is none of ours. */
static unsigned way_of(poll_function *poll)
{
    unsigned way = 0;
    while (way < WAYS && our_polls[way] != poll) {
        way++;
    }
    return way;
}

/* NULL: all ways are taken by others. */
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

/* ---- contexts ---------------------------------------------------------------------------- */

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

void lc_glib_hook_loop(void *main_loop)
{
    if (glib.get_default != NULL && hooked_count > 0 && main_loop != NULL) {
        hook(glib.context_of(main_loop));
    }
}
