#include "probes/glib/glib.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/got/got.h"
#include "module/running_work.h"
#include "cpython/objects/raised.h"

/* GSignalEmissionHook */
typedef int emission_hook(void *hint, unsigned count, const void *values, void *data);

/* Of libgobject-2.0 and libgdk-3 or libgtk-4; parts of their ABI. */
static struct {
    size_t (*type_from_name)(const char *name);
    void *(*class_peek)(size_t type);
    unsigned (*signal_lookup)(const char *name, size_t type);
    unsigned long (*add_hook)(unsigned signal, unsigned detail, emission_hook *hook, void *data,
                              void *destroy);
    void (*remove_hook)(unsigned signal, unsigned long hook);
    void *(*closure_ref)(void *closure);
    void (*closure_unref)(void *closure);
    int (*event_type)(const void *event);
    uint32_t (*event_time)(const void *event);
    void *(*default_context)(void); /* libglib-2.0's, as the next */
    int (*is_owner)(void *context);
} gtk;

typedef struct {
    const char *library;      /* which has functions of events */
    const char *emitter;      /* the type that emits "event" */
    const char *const *names; /* of input events, by their types */
    int names_count;
    uint64_t fronts; /* the types of events about windows, as bits */
} gtk_version;

/* GdkEventType of GTK 3 (gdk/gdkevents.h), and of GTK 4. */
static const char *const names_3[] = {
    [4] = "ButtonPress", [5] = "ButtonPress", [6] = "ButtonPress", [7] = "ButtonRelease", [8] = "KeyPress",
    [9] = "KeyRelease",  [31] = "Scroll",     [37] = "TouchBegin", [38] = "TouchUpdate",  [39] = "TouchEnd",
};
static const char *const names_4[] = {
    [2] = "ButtonPress", [3] = "ButtonRelease", [4] = "KeyPress",     [5] = "KeyRelease",
    [15] = "Scroll",     [17] = "TouchBegin",   [18] = "TouchUpdate", [19] = "TouchEnd",
};
#define BIT(type) (UINT64_C(1) << (type))
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const gtk_version versions[] = {
    /* delete, focus, map, unmap, window state */
    {"libgdk-3.so.0", "GtkWidget", names_3, COUNT(names_3), BIT(0) | BIT(12) | BIT(14) | BIT(15) | BIT(32)},
    /* delete, focus */
    {"libgtk-4.so.1", "GdkSurface", names_4, COUNT(names_4), BIT(0) | BIT(8)},
};

static const gtk_version *version; /* NULL: not asked for, or not there; under the GIL, looked at without */
static PyObject *listener;     /* under the GIL; until glib_listen(None): GTK calls with no module at hand */
static bool is_wanted;         /* atomic: the emission hook has not been laid yet, and shall be */
static unsigned signal_number; /* of the hook that is laid */
static unsigned long hook_number; /* 0: none is */

/* The event that the thread handles. */
static _Thread_local struct {
    const void *event; /* NULL: none; only compared */
    const char *name;
    void *closure; /* of its first handler, kept; or NULL */
    PyObject *signal;
    uint64_t begin_ns;
    uint32_t stamp_ms;
    bool front; /* another window may be in front */
} own __attribute__((tls_model("initial-exec")));

PyObject *lc_glib_handler_of(const void *closure)
{
    PyObject *handler;
    /* a GClosure: a word of bits, and three pointers */
    memcpy(&handler, (const char *)closure + 32u, sizeof handler);
    return handler;
}

static void call(PyObject *arguments)
{
    PyObject *function = Py_XNewRef(listener);
    PyObject *result =
        function != NULL && arguments != NULL ? PyObject_CallObject(function, arguments) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    Py_XDECREF(result);
    lc_raised_pass_on();
}

static void tell(uint64_t end_ns)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    const lc_raised before = lc_raised_take();
    /* of a loop that ran already when we came */
    if (listener != NULL && lc_thread_lane_get("glib") == NULL) {
        lc_raised_pass_on();
    }
    if (listener != NULL && own.front) {
        call(Py_BuildValue("sKKKOO", "", 0ull, 0ull, 0ull, Py_None, Py_None));
    }
    if (listener != NULL && own.event != NULL) {
        PyObject *handler = own.closure != NULL ? lc_glib_handler_of(own.closure) : NULL;
        call(Py_BuildValue("sKKKOO", own.name, (unsigned long long)own.stamp_ms,
                           (unsigned long long)own.begin_ns, (unsigned long long)end_ns,
                           handler != NULL ? own.signal : Py_None, handler != NULL ? handler : Py_None));
    }
    lc_raised_put_back(before);
    PyGILState_Release(state);
}

static void lay_hook(void);

void lc_glib_input_end(void)
{
    if (__builtin_expect(__atomic_load_n(&is_wanted, __ATOMIC_RELAXED), 0)) {
        lay_hook();
    }
    if (__builtin_expect(own.event == NULL && !own.front, 1)) {
        return;
    }
    if (lc_may_call_python()) {
        tell(lc_now_ns());
    }
    if (own.closure != NULL) {
        gtk.closure_unref(own.closure);
    }
    own.event = NULL;
    own.closure = NULL;
    own.front = false;
}

void lc_glib_input_handler(void *closure, PyObject *signal)
{
    if (own.event != NULL && own.closure == NULL) {
        own.closure = gtk.closure_ref(closure);
        own.signal = signal;
    }
}

/* Of a GValue: the type, and two words of its value. */
#define VALUE_BYTES 24u
#define VALUE_OFFSET 8u

static int emitted(void *Py_UNUSED(hint), unsigned count, const void *values, void *data)
{
    const gtk_version *of = data;
    const void *event = NULL;
    if (count >= 2) {
        memcpy(&event, (const char *)values + VALUE_BYTES + VALUE_OFFSET, sizeof event);
    }
    if (event == NULL || event == own.event) { /* GTK 3: again, of the widget around the one before */
        return 1;
    }
    const int type = gtk.event_type(event);
    if (type < 0 || type >= 64) {
        return 1;
    }
    lc_glib_input_end();
    own.front |= (of->fronts & BIT(type)) != 0;
    if (type < of->names_count && of->names[type] != NULL) {
        own.event = event;
        own.name = of->names[type];
        own.begin_ns = lc_now_ns();
        own.stamp_ms = gtk.event_time(event);
    }
    return 1; /* the hook stays */
}

static bool has_class(const gtk_version *of)
{
    const size_t type = gtk.type_from_name(of->emitter);
    return type != 0 && gtk.class_peek(type) != NULL;
}

/* As soon as there is a window: its class is made with it, and not by us. On GTK's own thread, which looks
 * at its windows then: the one that runs the default context. */
static void lay_hook(void)
{
    const gtk_version *of = version;
    if (of == NULL || !has_class(of) || !gtk.is_owner(gtk.default_context()) ||
        !__atomic_exchange_n(&is_wanted, false, __ATOMIC_SEQ_CST)) {
        return;
    }
    const size_t type = gtk.type_from_name(of->emitter);
    const unsigned number = gtk.signal_lookup("event", type);
    if (number != 0) {
        signal_number = number;
        hook_number = gtk.add_hook(number, 0, emitted, (void *)(uintptr_t)of, NULL);
        own.front = true;
    }
}

static bool learn(const gtk_version *of)
{
    void *gobject = dlopen("libgobject-2.0.so.0", RTLD_LAZY | RTLD_NOLOAD); /* both stay open: they call us */
    void *gdk = dlopen(of->library, RTLD_LAZY | RTLD_NOLOAD);
    return gobject != NULL && gdk != NULL &&
           lc_symbol_find(gobject, "g_type_from_name", &gtk.type_from_name) &&
           lc_symbol_find(gobject, "g_type_class_peek", &gtk.class_peek) &&
           lc_symbol_find(gobject, "g_signal_lookup", &gtk.signal_lookup) &&
           lc_symbol_find(gobject, "g_signal_add_emission_hook", &gtk.add_hook) &&
           lc_symbol_find(gobject, "g_signal_remove_emission_hook", &gtk.remove_hook) &&
           lc_symbol_find(gobject, "g_closure_ref", &gtk.closure_ref) &&
           lc_symbol_find(gobject, "g_closure_unref", &gtk.closure_unref) &&
           lc_symbol_find(gobject, "g_main_context_default", &gtk.default_context) &&
           lc_symbol_find(gobject, "g_main_context_is_owner", &gtk.is_owner) &&
           lc_symbol_find(gdk, "gdk_event_get_event_type", &gtk.event_type) &&
           lc_symbol_find(gdk, "gdk_event_get_time", &gtk.event_time);
}

static void stop(void)
{
    __atomic_store_n(&is_wanted, false, __ATOMIC_SEQ_CST);
    if (hook_number != 0) {
        gtk.remove_hook(signal_number, hook_number);
        hook_number = 0;
    }
    Py_CLEAR(listener);
}

PyObject *lc_glib_listen(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function;
    int major;
    if (!PyArg_ParseTuple(args, "Oi", &function, &major)) {
        return NULL;
    }
    stop();
    if (function == Py_None || (major != 3 && major != 4) || !learn(&versions[major - 3])) {
        return PyBool_FromLong(function == Py_None);
    }
    version = &versions[major - 3];
    listener = Py_NewRef(function);
    __atomic_store_n(&is_wanted, true, __ATOMIC_SEQ_CST);
    Py_RETURN_TRUE;
}
