#include "probes/tk/callback.h"

#include "probes/hooks/patched_function.h"
#include "probes/tk/frames.h"
#include "probes/tk/thread.h"
#include "probes/hooks/raised.h"

enum { KEY_PRESS = 2, MOTION = 6, MOUSE_WHEEL = 38 };

#define PRISTINE 1L

typedef struct {
    int lasti;
    int line;
} call_site;

/* Of tkinter; one in one interpreter. */
static struct {
    PyObject *func, *subst, *widget, *path, *report; /* names */
    PyCodeObject *code;                              /* of the pristine original, for tracebacks; NULL: never seen */
    call_site of_func, of_subst, of_report;
    PyObject *globals;
    PyObject *after_code; /* NULL: cannot be told apart */
    Py_ssize_t after_cell;
    PyObject *input; /* or NULL */
    /* Tcl's arguments about an event: how many, and at which places those are that we read. 0: not known. */
    struct {
        Py_ssize_t count, button, time, type;
    } event;
} tk;

/* ---- what the original does -------------------------------------------------------------- */

/* self.func(*self.subst(*args)), or without subst. `site`: where it was when it failed. */
static PyObject *call_function(PyObject *func, PyObject *subst, PyObject *const *args, size_t count, const call_site **site)
{
    const int substitutes = PyObject_IsTrue(subst);
    if (substitutes <= 0) {
        return substitutes < 0 ? NULL : PyObject_Vectorcall(func, args, count, NULL);
    }
    PyObject *given = PyObject_Vectorcall(subst, args, count, NULL);
    *site = given == NULL ? &tk.of_subst : &tk.of_func;
    PyObject *tuple = given ? PySequence_Tuple(given) : NULL;
    PyObject *result = tuple ? PyObject_Vectorcall(func, &PyTuple_GET_ITEM(tuple, 0), (size_t)PyTuple_GET_SIZE(tuple), NULL)
                             : NULL;
    Py_XDECREF(tuple);
    Py_XDECREF(given);
    return result;
}

/* except SystemExit: raise; except: self.widget._report_exception(). Meanwhile the exception is what sys.exc_info() gives. */
static PyObject *report_exception(PyObject *wrapper, const call_site *site)
{
    lc_traceback_add(tk.code, tk.globals, site->lasti, site->line);
    if (PyErr_ExceptionMatches(PyExc_SystemExit)) {
        return NULL;
    }
    const lc_handling handling = lc_handling_begin();
    PyObject *widget = PyObject_GetAttr(wrapper, tk.widget);
    PyObject *result = widget ? PyObject_CallMethodNoArgs(widget, tk.report) : NULL;
    lc_handling_end(handling);
    Py_XDECREF(widget);
    if (result == NULL) {
        lc_traceback_add(tk.code, tk.globals, tk.of_report.lasti, tk.of_report.line);
        return NULL;
    }
    Py_DECREF(result);
    Py_RETURN_NONE;
}

/* ---- names ------------------------------------------------------------------------------- */

static PyObject *idle_call(lc_patched *self, PyObject *const *args, size_t count, PyObject *names);

/* A number as Tcl writes it; 0: none. */
static uint32_t number(PyObject *text)
{
    uint64_t value = 0;
    if (PyLong_Check(text)) {
        value = PyLong_AsUnsignedLongLongMask(text);
    } else if (PyUnicode_Check(text) && PyUnicode_IS_COMPACT_ASCII(text) && PyUnicode_GET_LENGTH(text) <= 10) {
        for (const char *c = PyUnicode_DATA(text); *c != '\0'; c++) {
            if (*c < '0' || *c > '9') {
                return 0;
            }
            value = value * 10u + (unsigned)(*c - '0');
        }
    }
    PyErr_Clear();
    return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* The program's function of what Misc.after has registered. Borrowed: the closure keeps it. NULL: it is none such. */
static PyObject *function_of_after(PyObject *func)
{
    if (!PyFunction_Check(func) || PyFunction_GET_CODE(func) != tk.after_code) {
        return NULL;
    }
    PyObject *closure = PyFunction_GET_CLOSURE(func);
    PyObject *cell = closure != NULL && PyTuple_GET_SIZE(closure) > tk.after_cell ? PyTuple_GET_ITEM(closure, tk.after_cell)
                                                                                  : NULL;
    return cell != NULL && PyCell_Check(cell) ? PyCell_GET(cell) : NULL;
}

/* New reference to the path of the command's widget; NULL without an exception. */
static PyObject *widget_path(PyObject *wrapper)
{
    PyObject *widget = PyObject_GetAttr(wrapper, tk.widget);
    PyObject *path = widget ? PyObject_GetAttr(widget, tk.path) : NULL;
    PyErr_Clear();
    Py_XDECREF(widget);
    if (path != NULL && !PyUnicode_CheckExact(path)) {
        Py_CLEAR(path);
    }
    return path;
}

static uint64_t address_of(const PyObject *object) { return (uint64_t)(uintptr_t)object; }

static PyObject *note_work(lc_work_note *note, PyObject *wrapper, PyObject *func, PyObject *subst, PyObject *const *args,
                           Py_ssize_t count)
{
    PyObject *function = function_of_after(func);
    if (function != NULL) {
        const bool is_idle = PyObject_TypeCheck(function, lc_patched_function_type()) &&
                             ((lc_patched *)function)->call == idle_call;
        function = is_idle ? ((lc_patched *)function)->original : function;
        *note = (lc_work_note){.callable = address_of(lc_inside_partials(function)),
                             .way = is_idle ? LC_WAY_AFTER_IDLE : LC_WAY_AFTER};
        return NULL;
    }
    PyObject *path = widget_path(wrapper);
    *note = (lc_work_note){.callable = address_of(lc_inside_partials(func)), .widget = address_of(path), .way = LC_WAY_COMMAND};
    if (subst != Py_None && tk.event.count > 0 && count == tk.event.count) {
        note->event = (uint16_t)number(args[tk.event.type]);
        note->button = (uint16_t)number(args[tk.event.button]);
    }
    return path;
}

/* ---- the user's input -------------------------------------------------------------------- */

static bool is_input(const lc_work_note *note)
{
    return tk.input != NULL && ((note->event >= KEY_PRESS && note->event <= MOTION) || note->event == MOUSE_WHEEL);
}

/* Keeps the exception that is set. False: something that is not ours to stop came up, and is set. */
static bool tell_input(const lc_work_note *note, PyObject *path, uint32_t time_ms, uint64_t begin_ns)
{
    const lc_raised before = lc_raised_take();
    PyObject *input = Py_NewRef(tk.input);
    PyObject *result = PyObject_CallFunction(input, "(OIII)KK", path ? path : Py_None, (unsigned)note->event,
                                             (unsigned)note->button, (unsigned)time_ms, (unsigned long long)begin_ns,
                                             (unsigned long long)lc_now_ns());
    Py_DECREF(input);
    return lc_raised_settle(before, result);
}

/* ---- the bracket ------------------------------------------------------------------------- */

typedef struct {
    lc_patched *patch;
    PyObject *wrapper;
    PyObject *func;  /* NULL, as `subst`: could not be had, an exception is set */
    PyObject *subst;
    PyObject *const *args; /* of the command */
    Py_ssize_t count;
} command;

static PyObject *run(const command *c)
{
    if (c->patch->role != PRISTINE) {
        return lc_patched_call_original(c->patch, c->args - 1, (size_t)c->count + 1, NULL);
    }
    const call_site *site = &tk.of_func;
    PyObject *result = c->subst != NULL ? call_function(c->func, c->subst, c->args, (size_t)c->count, &site) : NULL;
    return result != NULL ? result : report_exception(c->wrapper, site);
}

static PyObject *run_bracketed(const command *c, lc_lane *lane)
{
    lc_running running;
    PyObject *path = note_work(&running.note, c->wrapper, c->func, c->subst, c->args, c->count);
    const bool watches_input = is_input(&running.note);
    const uint32_t time_ms = watches_input ? number(c->args[tk.event.time]) : 0;
    const uint64_t begin_ns = watches_input ? lc_now_ns() : 0;
    lc_running_begin(&running, lane);
    PyObject *result = run(c);
    lc_running_end(&running);
    if (watches_input && !tell_input(&running.note, path, time_ms, begin_ns)) {
        Py_CLEAR(result);
    }
    Py_XDECREF(path);
    return result;
}

/* What Tk has shown since the last command. As lc_tk_tell. */
static bool tell(PyObject *wrapper)
{
    lc_tk_drawing *drawing = lc_own_tk_drawing;
    if (drawing == NULL) {
        return true;
    }
    drawing->served = true;
    if (__builtin_expect(drawing->count == 0 && !drawing->look, 1)) {
        return true;
    }
    PyObject *widget = PyObject_GetAttr(wrapper, tk.widget);
    PyErr_Clear();
    const bool ours = lc_tk_tell_kept(drawing, widget);
    Py_XDECREF(widget);
    return ours;
}

static PyObject *call_command(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    const Py_ssize_t given = PyVectorcall_NARGS(count);
    if (given < 1 || names != NULL) {
        return lc_patched_call_original(patch, args, count, names);
    }
    lc_lane *lane = lc_tk_lane_get(patch->extra);
    if (lane == NULL && PyErr_Occurred()) {
        return NULL;
    }
    /* What after() registers deletes itself when it has run: this may be the last reference. */
    PyObject *wrapper = Py_NewRef(args[0]);
    if (!tell(wrapper)) {
        Py_DECREF(wrapper);
        return NULL;
    }
    lane = lane != NULL ? lc_thread_lane_peek() : NULL; /* the listener may have stopped the engine */
    command c = {patch, wrapper, PyObject_GetAttr(wrapper, tk.func), NULL, args + 1, given - 1};
    c.subst = c.func ? PyObject_GetAttr(c.wrapper, tk.subst) : NULL;
    if (c.subst == NULL && patch->role != PRISTINE) {
        PyErr_Clear();
    }
    PyObject *result = lane != NULL && c.subst != NULL ? run_bracketed(&c, lane) : run(&c);
    Py_XDECREF(c.subst);
    Py_XDECREF(c.func);
    Py_DECREF(wrapper);
    return result;
}

/* ---- idle work --------------------------------------------------------------------------- */

static PyObject *idle_call(lc_patched *self, PyObject *const *args, size_t count, PyObject *names)
{
    const uint64_t begin_ns = lc_now_ns();
    return lc_patched_tell_ran(self, begin_ns, lc_patched_call_original(self, args, count, names));
}

PyObject *lc_tk_idle(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function, *ran;
    return PyArg_ParseTuple(args, "OO", &function, &ran) ? lc_patched_function_new(idle_call, function, ran, 0) : NULL;
}

/* ---- set-up ------------------------------------------------------------------------------ */

static bool make_names(void)
{
    if (tk.report == NULL) {
        tk.func = PyUnicode_InternFromString("func");
        tk.subst = PyUnicode_InternFromString("subst");
        tk.widget = PyUnicode_InternFromString("widget");
        tk.path = PyUnicode_InternFromString("_w");
        tk.report = PyUnicode_InternFromString("_report_exception");
    }
    return tk.func && tk.subst && tk.widget && tk.path && tk.report;
}

PyObject *lc_tk_callback(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *site, *globals, *after, *seen, *input, *partial, *code = NULL, *after_code = NULL;
    call_site of_func = {0, 0}, of_subst = {0, 0}, of_report = {0, 0};
    Py_ssize_t cell = 0, count, button, time, event_type;
    if (!PyArg_ParseTuple(args, "OOO!OOOO!(nnnn)", &original, &site, &PyDict_Type, &globals, &after, &seen, &input,
                          &PyType_Type, &partial, &count, &button, &time, &event_type) ||
        (site != Py_None && !PyArg_ParseTuple(site, "O!(ii)(ii)(ii)", &PyCode_Type, &code, &of_func.lasti, &of_func.line,
                                              &of_subst.lasti, &of_subst.line, &of_report.lasti, &of_report.line)) ||
        (after != Py_None && !PyArg_ParseTuple(after, "O!n", &PyCode_Type, &after_code, &cell)) || !make_names()) {
        return NULL;
    }
    if (code != NULL) {
        Py_XSETREF(tk.code, (PyCodeObject *)Py_NewRef(code));
        tk.of_func = of_func;
        tk.of_subst = of_subst;
        tk.of_report = of_report;
    }
    Py_XSETREF(tk.globals, Py_NewRef(globals));
    Py_XSETREF(tk.after_code, Py_XNewRef(after_code));
    tk.after_cell = cell;
    const Py_ssize_t highest = button > time ? (button > event_type ? button : event_type)
                                             : (time > event_type ? time : event_type);
    tk.event.count = button >= 0 && time >= 0 && event_type >= 0 && highest < count ? count : 0;
    tk.event.button = button;
    tk.event.time = time;
    tk.event.type = event_type;
    lc_learn_partial((PyTypeObject *)partial);
    Py_XSETREF(tk.input, lc_or_null(input));
    return lc_patched_function_new(call_command, original, seen, code != NULL ? PRISTINE : 0);
}
