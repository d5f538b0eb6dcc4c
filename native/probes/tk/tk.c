/* What Tcl and Tk do on a thread that runs them, where Python may not be called.
 *
 * Waits: an event source of Tcl's says when Tcl is about to wait, and when it has waited.
 * Tcl_CreateEventSource(3tcl): the setup procedures of all sources run before each wait, their check
 * procedures after it, also where Tcl does not block (update()). They run without the GIL: a source in Python
 * would have to get the GIL twice a turn. loop_hooks.h says whose the turns are.
 *
 * Frames: Tk draws when Tcl is idle, without a sign: the calls by which libtk puts something on the screen are
 * hooked in its table of imported functions (got.h), and those that go to a window are a drawing. A frame is
 * all that is drawn between two waits of Tcl's, or by one update_idletasks(); of all windows of the thread
 * together.
 *
 * Events: a generic handler sees each event of X before Tk's bindings do: what the user does to a button comes
 * to Python only as a call of its command.
 *
 * All of it is kept until a place where Python may be called: the begin of a command, the end of update().
 * Tcl is found in what _tkinter is linked to: nothing of ours is.
 *
 * Calls of Python; all under the GIL, and but for tk_learn about the calling thread.
 *
 * tk_learn(path of the extension module _tkinter | None) -> (waits, frames): what can be seen from now on.
 * None: _tkinter is part of the program itself.
 *
 * tk_end(): nothing is drawn that is seen, and the thread's waits and events are not seen any more; those of
 * other threads mean nothing where no engine runs.
 *
 * tk_shown(in_command) -> (is_new, look, ((waited_ns, asked_ns, drawn_ns), ...)) | None: the thread runs Tcl,
 * and what is kept of it, if there is anything. `is_new`: it is seen for the first time under this engine;
 * `look`: the focus may be another. `in_command`: a command begins.
 *
 * tk_updated(): the program has had everything drawn, by update() or update_idletasks().
 *
 * tk_input() -> (X's type, button, time in ms) | None: the user's event that is served; once. */
#include "module/bindings.h"

#include <dlfcn.h>
#include <string.h>

#include "core/clock/clock.h"
#include "core/got/got.h"
#include "module/thread_lane.h"
#include "probes/hooks/hook_set.h"
#include "probes/hooks/wait_hook.h"

/* A shorter wait asked for events that were there, or not: things may be left to be drawn after it. */
#define REAL_WAIT_NS UINT64_C(500000)
/* Even on a busy machine Tcl's own thread, which looks for events for the others, has answered by then. */
#define POLL_NS UINT64_C(50000000)
#define FRAMES_MAX 512u
#define TCL_DONT_WAIT (1 << 1) /* tcl.h */

/* X.h; MOUSE_WHEEL is Tk's own (tk.h) */
enum {
    KEY_PRESS = 2,
    BUTTON_PRESS = 4,
    BUTTON_RELEASE = 5,
    MOTION = 6,
    FOCUS_IN = 9,
    DESTROY_NOTIFY = 17,
    CONFIGURE_NOTIFY = 22,
    MOUSE_WHEEL = 38
};
/* Of XKeyEvent, XButtonEvent and XMotionEvent, with words of 64 bits (Xlib.h). */
#define TIME_OFFSET 56u
#define BUTTON_OFFSET 84u

typedef int event_handler(void *data, void *event); /* Tk_GenericProc */
typedef void handler_function(event_handler *handler, void *data);
typedef void event_procedure(void *data, int flags); /* Tcl_EventSetupProc, Tcl_EventCheckProc */
typedef void event_source_function(event_procedure *setup, event_procedure *check, void *data);

static struct {
    void *(*window_of)(void *display, unsigned long number); /* Tk_IdToWindow; NULL: Tk was not found */
    handler_function *add_handler;
    handler_function *remove_handler;
    int (*main_windows)(void);            /* Tk_GetNumMainWindows: of the calling thread */
    event_source_function *create_source; /* NULL: Tcl was not found */
    event_source_function *delete_source;
} tk;

typedef struct {
    uint64_t waited_ns; /* the loop's waits since the frame before, together */
    /* the last moment at which nothing was to be drawn: the end of a wait, or of an update() */
    uint64_t asked_ns;
    uint64_t drawn_ns;
} frame;

typedef struct {
    int type; /* 0: none */
    uint32_t button;
    uint32_t time_ms;
} user_input;

/* One thread that runs Tcl. */
typedef struct {
    uint64_t generation; /* of the agent that knows this thread */
    bool has_source;
    bool has_handler;
    bool served;        /* since the last wait: an event, a command */
    bool look;          /* the focus has changed */
    user_input input;   /* the event that is served, until a command takes it */
    uint64_t waited_ns; /* since the last frame, but for the last wait */
    uint64_t asked_ns;
    uint64_t wait_begin_ns; /* the last wait */
    uint64_t wait_end_ns;
    uint64_t drawn_ns; /* 0: nothing since the last frame */
    uint32_t count;    /* frames that are kept */
    frame frames[FRAMES_MAX];
} lc_tk_thread;

static _Thread_local lc_tk_thread *own __attribute__((tls_model("initial-exec")));

/* ---- what is drawn ----------------------------------------------------------------------- */

static inline void note_drawing(void *display, unsigned long number)
{
    if (own != NULL && tk.window_of(display, number) != NULL) {
        own->drawn_ns = lc_now_ns();
    }
}

#define DRAWING_WAY(way, name, parameters, arguments)                                                        \
    static int hooked_##name##_##way parameters                                                              \
    {                                                                                                        \
        note_drawing(display, to);                                                                           \
        return name##_next[way] arguments;                                                                   \
    }
#define DRAWING(...) LC_HOOKS(DRAWING_WAY, int, __VA_ARGS__)

DRAWING(XCopyArea,
        (void *display, unsigned long from, unsigned long to, void *gc, int from_x, int from_y,
         unsigned width, unsigned height, int x, int y),
        (display, from, to, gc, from_x, from_y, width, height, x, y))
DRAWING(XFillRectangle,
        (void *display, unsigned long to, void *gc, int x, int y, unsigned width, unsigned height),
        (display, to, gc, x, y, width, height))
DRAWING(XFillRectangles, (void *display, unsigned long to, void *gc, void *rectangles, int count),
        (display, to, gc, rectangles, count))

#define DRAWINGS 3u

static lc_hooked_function functions[DRAWINGS] = {LC_HOOK_ROW_LATE(XCopyArea, NULL),
                                                 LC_HOOK_ROW_LATE(XFillRectangle, NULL),
                                                 LC_HOOK_ROW_LATE(XFillRectangles, NULL)};
static lc_hook_set drawings = {.functions = functions}; /* under the GIL, as the next */
static bool is_hooked;

static void unhook(void)
{
    if (is_hooked) {
        is_hooked = false;
        lc_hook_set_remove(&drawings, (lc_got_object){.address = LC_HOOK_CODE(tk.window_of)});
    }
}

static bool hook(void *object)
{
    unhook();
    for (uint32_t i = 0; i < DRAWINGS; i++) {
        functions[i].fallback = dlsym(object, functions[i].name);
    }
    const lc_hooked_object *hooked =
        lc_hook_set_add(&drawings, (lc_got_object){.address = LC_HOOK_CODE(tk.window_of)}, (uint8_t)DRAWINGS);
    is_hooked = hooked != NULL;
    if (hooked != NULL && hooked->count < DRAWINGS) {
        unhook();
    }
    return is_hooked;
}

/* ---- frames ------------------------------------------------------------------------------ */

/* The last wait was one in which nothing was left to be drawn. */
static void count_wait(lc_tk_thread *thread)
{
    const uint64_t waited = thread->wait_end_ns - thread->wait_begin_ns;
    if (waited >= REAL_WAIT_NS) {
        thread->waited_ns += waited;
        thread->asked_ns = thread->wait_end_ns;
    }
    thread->wait_begin_ns = thread->wait_end_ns;
}

static void end_frame(lc_tk_thread *thread)
{
    if (thread->drawn_ns == 0) {
        return;
    }
    /* What is drawn with nothing served since a wait was idle work that waited for the wait: Tcl only
     * polled. How long that took says nothing, for another thread has to run meanwhile. */
    if (thread->served || thread->wait_end_ns - thread->wait_begin_ns >= POLL_NS) {
        count_wait(thread);
    }
    if (thread->count == FRAMES_MAX) { /* none was taken: the older half is given up */
        thread->count = FRAMES_MAX / 2u;
        memmove(thread->frames, thread->frames + thread->count, thread->count * sizeof *thread->frames);
    }
    thread->frames[thread->count++] = (frame){thread->waited_ns, thread->asked_ns, thread->drawn_ns};
    thread->drawn_ns = thread->waited_ns = 0;
}

static void note_wait_begin(lc_tk_thread *thread)
{
    end_frame(thread);
    count_wait(thread);
    thread->wait_begin_ns = thread->wait_end_ns = lc_now_ns();
}

/* ---- events ------------------------------------------------------------------------------ */

static bool is_input(int type) { return (type >= KEY_PRESS && type <= MOTION) || type == MOUSE_WHEEL; }

/* Tk's thread, without the GIL; sees all events of X and takes none. */
static int see_event(void *Py_UNUSED(data), void *event)
{
    lc_tk_thread *thread = own;
    int type;
    memcpy(&type, event, sizeof type);
    if (thread == NULL) {
        return 0;
    }
    thread->served = true;
    thread->look |= type == FOCUS_IN || type == DESTROY_NOTIFY;
    if (is_input(type) || type == CONFIGURE_NOTIFY) { /* its commands are no answer to the user */
        thread->input = (user_input){0};
    }
    if (is_input(type)) { /* others may come while it is served: a menu is unmapped before its command */
        unsigned long time;
        thread->input.type = type;
        memcpy(&time, (const char *)event + TIME_OFFSET, sizeof time);
        thread->input.time_ms = (uint32_t)time;
        if (type == BUTTON_PRESS || type == BUTTON_RELEASE) {
            memcpy(&thread->input.button, (const char *)event + BUTTON_OFFSET, sizeof thread->input.button);
        }
    }
    return 0;
}

/* ---- waits ------------------------------------------------------------------------------- */

static void about_to_wait(void *Py_UNUSED(data), int Py_UNUSED(flags))
{
    lc_wait_told_begin();
    if (own != NULL) {
        own->input = (user_input){0};
        note_wait_begin(own);
    }
}

static void has_waited(void *Py_UNUSED(data), int flags)
{
    if (own != NULL) {
        own->served = false;
        if ((flags & TCL_DONT_WAIT) == 0) {
            own->wait_end_ns = lc_now_ns();
        }
    }
    lc_wait_told_end();
}

/* ---- threads ----------------------------------------------------------------------------- */

/* Tcl may end its thread after us, and draw meanwhile. */
static void free_thread(void *thread)
{
    own = NULL;
    free(thread);
}

static pthread_key_t thread_key;
static int key_error;

static void make_key(void) { key_error = pthread_key_create(&thread_key, free_thread); }

static lc_tk_thread *get_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (own == NULL) {
        (void)pthread_once(&once, make_key);
        own = key_error == 0 ? lc_thread_memory(thread_key, sizeof(lc_tk_thread)) : NULL;
    }
    return own;
}

static void open_thread(lc_tk_thread *thread)
{
    thread->generation = lc_the_agent.generation;
    thread->look = true;
    thread->count = 0;
    thread->drawn_ns = thread->waited_ns = 0;
    thread->asked_ns = thread->wait_begin_ns = thread->wait_end_ns = lc_now_ns();
    if (!thread->has_source && tk.create_source != NULL) {
        thread->has_source = true;
        tk.create_source(about_to_wait, has_waited, NULL);
    }
}

/* Tk calls Tcl by a table that it is given with the process's first window: without one, as in a program
 * that only runs Tcl, its functions crash. This one does not. */
static void see_events(lc_tk_thread *thread)
{
    if (!thread->has_handler && tk.add_handler != NULL && tk.main_windows() > 0) {
        thread->has_handler = true;
        tk.add_handler(see_event, NULL);
    }
}

/* The calling thread under this engine; `is_new`: for the first time. NULL: nothing can be seen, or, with an
 * exception set, the program's own came up meanwhile. */
static lc_tk_thread *seen_thread(bool *is_new)
{
    *is_new = false;
    if (__builtin_expect(own != NULL && own->generation == lc_the_agent.generation, 1)) {
        return own;
    }
    const lc_lane *lane = lc_thread_lane_get("tk"); /* which starts an engine that is armed */
    lc_tk_thread *thread = lane != NULL ? get_thread() : NULL;
    if (thread != NULL) {
        open_thread(thread);
        *is_new = true;
    }
    return thread;
}

PyObject *lc_tk_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    unhook();
    if (own != NULL) {
        if (own->has_source) {
            tk.delete_source(about_to_wait, has_waited, NULL);
        }
        if (own->has_handler) {
            tk.remove_handler(see_event, NULL);
        }
        own->has_source = own->has_handler = false;
        own->generation = 0;
    }
    Py_RETURN_NONE;
}

/* ---- what is told ------------------------------------------------------------------------ */

/* The collector may run what draws, and asks for frames, meanwhile. */
static PyObject *take_frames(lc_tk_thread *thread)
{
    const uint32_t count = thread->count;
    thread->count = 0;
    PyObject *frames = PyList_New(0);
    for (uint32_t i = 0; frames != NULL && i < count; i++) {
        const frame *each = &thread->frames[i];
        lc_append(&frames,
                  Py_BuildValue("(KKK)", (unsigned long long)each->waited_ns,
                                (unsigned long long)each->asked_ns, (unsigned long long)each->drawn_ns));
    }
    return lc_tuple_of(frames);
}

PyObject *lc_tk_shown(PyObject *Py_UNUSED(module), PyObject *in_command)
{
    bool is_new;
    lc_tk_thread *thread = seen_thread(&is_new);
    if (thread == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    see_events(thread);
    thread->served |= in_command == Py_True;
    if (__builtin_expect(thread->count == 0 && !thread->look, 1)) { /* a new one is looked at */
        Py_RETURN_NONE;
    }
    const bool look = thread->look;
    thread->look = false;
    PyObject *frames = take_frames(thread);
    return frames != NULL ? Py_BuildValue("(NNN)", PyBool_FromLong(is_new), PyBool_FromLong(look), frames)
                          : NULL;
}

PyObject *lc_tk_updated(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (own != NULL) {
        end_frame(own);
        count_wait(own);
        own->asked_ns = lc_now_ns();
    }
    Py_RETURN_NONE;
}

PyObject *lc_tk_input(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (own == NULL || own->input.type == 0) {
        Py_RETURN_NONE;
    }
    const user_input input = own->input;
    own->input = (user_input){0};
    return Py_BuildValue("(iII)", input.type, (unsigned)input.button, (unsigned)input.time_ms);
}

/* ---- the calls of Python ----------------------------------------------------------------- */

/* `window_of` last: where it is known, so are the others. */
static bool find_tk(void *object)
{
    return lc_symbol_find(object, "Tk_GetNumMainWindows", &tk.main_windows) &&
           lc_symbol_find(object, "Tk_DeleteGenericHandler", &tk.remove_handler) &&
           lc_symbol_find(object, "Tk_CreateGenericHandler", &tk.add_handler) &&
           lc_symbol_find(object, "Tk_IdToWindow", &tk.window_of);
}

static bool find_tcl(void *object)
{
    return lc_symbol_find(object, "Tcl_DeleteEventSource", &tk.delete_source) &&
           lc_symbol_find(object, "Tcl_CreateEventSource", &tk.create_source);
}

PyObject *lc_tk_learn(PyObject *Py_UNUSED(module), PyObject *path)
{
    const char *name = path == Py_None ? NULL : PyUnicode_AsUTF8(path);
    if (PyErr_Occurred()) {
        return NULL;
    }
    /* Of a loaded object dlsym looks into what that is linked to as well. */
    void *object = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    const bool waits = object != NULL && find_tcl(object);
    const bool frames = object != NULL && find_tk(object) && hook(object);
    if (object != NULL) {
        dlclose(object); /* it stays loaded: Python never unloads an extension */
    }
    return Py_BuildValue("(NN)", PyBool_FromLong(waits), PyBool_FromLong(frames));
}
