#include "probes/tk/frames.h"

#include <dlfcn.h>
#include <string.h>

#include "core/clock/clock.h"
#include "core/got/got.h"
#include "core/got/symbol.h"
#include "probes/hooks/patched_function.h"
#include "probes/hooks/raised.h"
#include "probes/hooks/thread_memory.h"
#include "module/thread_lane.h"

_Thread_local lc_tk_drawing *lc_own_tk_drawing __attribute__((tls_model("initial-exec")));

/* A shorter wait asked for events that were there, or not: things may be left to be drawn after it. */
#define REAL_WAIT_NS UINT64_C(500000)
/* Even on a busy machine Tcl's own thread, which looks for events for the others, has answered by then. */
#define POLL_NS UINT64_C(50000000)
enum { FOCUS_IN = 9, DESTROY_NOTIFY = 17 }; /* X.h */

typedef int event_handler(void *data, void *event); /* Tk_GenericProc */
typedef void handler_function(event_handler *handler, void *data);

static struct {
    void *(*window_of)(void *display, unsigned long number); /* Tk_IdToWindow; NULL: Tk was not found */
    handler_function *add_handler;
    handler_function *remove_handler;
    PyObject *listener; /* under the GIL */
} tk;

static _Thread_local bool has_handler __attribute__((tls_model("initial-exec")));

/* ---- what is drawn ----------------------------------------------------------------------- */

static inline void note_drawing(void *display, unsigned long number)
{
    lc_tk_drawing *drawing = lc_own_tk_drawing;
    if (drawing != NULL && tk.window_of(display, number) != NULL) {
        drawing->drawn_ns = lc_now_ns();
    }
}

typedef int copy_area(void *, unsigned long, unsigned long, void *, int, int, unsigned, unsigned, int, int);
typedef int fill_rectangle(void *, unsigned long, void *, int, int, unsigned, unsigned);
typedef int fill_rectangles(void *, unsigned long, void *, void *, int);

static copy_area *next_copy_area;
static fill_rectangle *next_fill_rectangle;
static fill_rectangles *next_fill_rectangles;

static int hooked_copy_area(void *display, unsigned long from, unsigned long to, void *gc, int from_x, int from_y,
                            unsigned width, unsigned height, int x, int y)
{
    note_drawing(display, to);
    return next_copy_area(display, from, to, gc, from_x, from_y, width, height, x, y);
}

static int hooked_fill_rectangle(void *display, unsigned long to, void *gc, int x, int y, unsigned width, unsigned height)
{
    note_drawing(display, to);
    return next_fill_rectangle(display, to, gc, x, y, width, height);
}

static int hooked_fill_rectangles(void *display, unsigned long to, void *gc, void *rectangles, int count)
{
    note_drawing(display, to);
    return next_fill_rectangles(display, to, gc, rectangles, count);
}

#define CODE(function) ((void *)(uintptr_t)(function))
#define HOOKS 3u

typedef struct {
    const char *name;
    void **next; /* what the hook leads to never changes again */
    void *hook;
} hooked_function;

static const hooked_function functions[HOOKS] = {
    {"XCopyArea", (void **)&next_copy_area, CODE(hooked_copy_area)},
    {"XFillRectangle", (void **)&next_fill_rectangle, CODE(hooked_fill_rectangle)},
    {"XFillRectangles", (void **)&next_fill_rectangles, CODE(hooked_fill_rectangles)},
};

static lc_got_patch patches[HOOKS]; /* under the GIL */

static void *choose(void *context, void *original)
{
    const hooked_function *function = context;
    if (original == function->hook) {
        return original;
    }
    if (*function->next == NULL) {
        __atomic_store_n(function->next, original, __ATOMIC_RELEASE);
    }
    return *function->next == original ? function->hook : NULL;
}

static void unhook(void)
{
    for (uint32_t i = 0; i < HOOKS; i++) {
        (void)lc_got_restore(&patches[i]);
    }
}

/* All of them or none. */
static bool hook(void *object)
{
    const lc_got_object where = {.address = CODE(tk.window_of)};
    bool all = true;
    for (uint32_t i = 0; i < HOOKS && all; i++) {
        const hooked_function *f = &functions[i];
        const lc_got_call call = {.symbol = f->name, .fallback = dlsym(object, f->name)};
        all = lc_got_is_in_place(&patches[i]) ||
              lc_got_replace(where, call, choose, (void *)(uintptr_t)f, &patches[i], 1) == 1;
    }
    if (!all) {
        unhook();
    }
    return all;
}

/* ---- frames ------------------------------------------------------------------------------ */

/* The last wait was one in which nothing was left to be drawn. */
static void count_wait(lc_tk_drawing *drawing)
{
    const uint64_t waited = drawing->wait_end_ns - drawing->wait_begin_ns;
    if (waited >= REAL_WAIT_NS) {
        drawing->waited_ns += waited;
        drawing->asked_ns = drawing->wait_end_ns;
    }
    drawing->wait_begin_ns = drawing->wait_end_ns;
}

void lc_tk_drawing_ended(lc_tk_drawing *drawing)
{
    if (drawing->drawn_ns == 0) {
        return;
    }
    /* What is drawn with nothing served since a wait was idle work that waited for the wait: Tcl only polled. How long
     * that took says nothing, for another thread has to run meanwhile. */
    if (drawing->served || drawing->wait_end_ns - drawing->wait_begin_ns >= POLL_NS) {
        count_wait(drawing);
    }
    if (drawing->count == LC_TK_FRAMES_MAX) { /* none was taken: the older half is given up */
        drawing->count = LC_TK_FRAMES_MAX / 2u;
        memmove(drawing->frames, drawing->frames + drawing->count, drawing->count * sizeof *drawing->frames);
    }
    drawing->frames[drawing->count++] = (lc_tk_frame){drawing->waited_ns, drawing->asked_ns, drawing->drawn_ns};
    drawing->drawn_ns = drawing->waited_ns = 0;
}

void lc_tk_drawing_updated(lc_tk_drawing *drawing)
{
    lc_tk_drawing_ended(drawing);
    count_wait(drawing);
    drawing->asked_ns = lc_now_ns();
}

void lc_tk_drawing_waits(lc_tk_drawing *drawing)
{
    lc_tk_drawing_ended(drawing);
    count_wait(drawing);
    drawing->wait_begin_ns = drawing->wait_end_ns = lc_now_ns();
}

void lc_tk_drawing_waited(lc_tk_drawing *drawing, bool polls)
{
    drawing->served = false;
    if (!polls) {
        drawing->wait_end_ns = lc_now_ns();
    }
}

/* ---- focus ------------------------------------------------------------------------------- */

/* Tk's thread, without the GIL; sees all events of X and takes none. */
static int see_event(void *Py_UNUSED(data), void *event)
{
    int type;
    memcpy(&type, event, sizeof type);
    if (lc_own_tk_drawing != NULL) {
        lc_own_tk_drawing->served = true;
        lc_own_tk_drawing->look |= type == FOCUS_IN || type == DESTROY_NOTIFY;
    }
    return 0;
}

/* Tcl may end its thread after us, and draw meanwhile. */
static void free_drawing(void *drawing)
{
    lc_own_tk_drawing = NULL;
    free(drawing);
}

static pthread_key_t drawing_key;
static int key_error;

static void make_key(void) { key_error = pthread_key_create(&drawing_key, free_drawing); }

static lc_tk_drawing *make_drawing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_key);
    return key_error == 0 ? lc_thread_memory(drawing_key, sizeof(lc_tk_drawing)) : NULL;
}

lc_tk_drawing *lc_tk_drawing_open(void)
{
    if (tk.listener == NULL) {
        return NULL;
    }
    if (!has_handler && tk.add_handler != NULL) {
        has_handler = true;
        tk.add_handler(see_event, NULL);
    }
    if (lc_own_tk_drawing == NULL) {
        lc_own_tk_drawing = make_drawing();
    }
    if (lc_own_tk_drawing != NULL) {
        lc_tk_drawing *drawing = lc_own_tk_drawing;
        drawing->look = true;
        drawing->count = 0;
        drawing->drawn_ns = drawing->waited_ns = 0;
        drawing->asked_ns = drawing->wait_begin_ns = drawing->wait_end_ns = lc_now_ns();
    }
    return lc_own_tk_drawing;
}

/* ---- telling ----------------------------------------------------------------------------- */

static PyObject *kept_frames(const lc_tk_drawing *drawing)
{
    PyObject *frames = PyTuple_New(drawing->count);
    for (uint32_t i = 0; frames != NULL && i < drawing->count; i++) {
        const lc_tk_frame *frame = &drawing->frames[i];
        PyObject *one = Py_BuildValue("(KKK)", (unsigned long long)frame->waited_ns,
                                      (unsigned long long)frame->asked_ns, (unsigned long long)frame->drawn_ns);
        if (one == NULL) {
            Py_CLEAR(frames);
        } else {
            PyTuple_SET_ITEM(frames, i, one);
        }
    }
    return frames;
}

static PyObject *call_listener(lc_tk_drawing *drawing, PyObject *widget)
{
    PyObject *listener = Py_NewRef(tk.listener);
    PyObject *frames = kept_frames(drawing);
    const bool look = drawing->look;
    drawing->count = 0;
    drawing->look = false;
    PyObject *result = frames != NULL ? PyObject_CallFunction(listener, "OOO", widget != NULL ? widget : Py_None,
                                                              look ? Py_True : Py_False, frames)
                                      : NULL;
    Py_XDECREF(frames);
    Py_DECREF(listener);
    return result;
}

bool lc_tk_tell_kept(lc_tk_drawing *drawing, PyObject *widget)
{
    if (tk.listener == NULL || drawing->telling) {
        return true;
    }
    const lc_raised before = lc_raised_take();
    drawing->telling = true;
    PyObject *result = call_listener(drawing, widget);
    drawing->telling = false;
    return lc_raised_settle(before, result);
}

/* ---- the calls of Python ----------------------------------------------------------------- */

/* `window_of` last: where it is known, so are the others. */
static bool find(void *object)
{
    return lc_symbol_find(object, "Tk_CreateGenericHandler", &tk.add_handler) &&
           lc_symbol_find(object, "Tk_DeleteGenericHandler", &tk.remove_handler) &&
           lc_symbol_find(object, "Tk_IdToWindow", &tk.window_of);
}

static bool learn(const char *path)
{
    void *object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    const bool can = object != NULL && find(object) && hook(object);
    if (object != NULL) {
        dlclose(object); /* it stays loaded: Python never unloads an extension */
    }
    return can;
}

PyObject *lc_tk_listen(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *path;
    PyObject *listener;
    if (!PyArg_ParseTuple(args, "zO", &path, &listener)) {
        return NULL;
    }
    if (listener == Py_None) {
        Py_CLEAR(tk.listener);
        unhook();
        if (has_handler) {
            has_handler = false;
            tk.remove_handler(see_event, NULL);
        }
        Py_RETURN_FALSE;
    }
    Py_XSETREF(tk.listener, Py_NewRef(listener));
    return PyBool_FromLong(learn(path));
}

static PyObject *call_titled(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    if (lc_own_tk_drawing != NULL && PyVectorcall_NARGS(count) + (names ? PyTuple_GET_SIZE(names) : 0) > 1) {
        lc_own_tk_drawing->look = true;
    }
    return result;
}

PyObject *lc_tk_titled(PyObject *Py_UNUSED(module), PyObject *original)
{
    return lc_patched_function_new(call_titled, original, NULL, 0);
}
