#include "probes/tk/loop.h"

#include <string.h>

#include "probes/hooks/loop_hooks.h"
#include "probes/hooks/patched_function.h"
#include "probes/tk/frames.h"
#include "probes/tk/source.h"
#include "probes/tk/thread.h"

static const char kind[] = "tk";

enum { RUN, NESTED, UPDATE, GONE, DRAW };

_Thread_local lc_tk_thread lc_own_tk __attribute__((tls_model("initial-exec")));

lc_lane *lc_tk_lane_open(PyObject *seen)
{
    lc_lane *lane = lc_thread_lane_get(kind);
    if (lane == NULL && PyErr_Occurred()) {
        return NULL;
    }
    lc_own_tk.runs_tcl = true;
    lc_own_tk.by_hand = lc_own_tk.adopted = false;
    lc_own_tk.updates = 0;
    lc_own_tk.generation = lc_the_agent.generation;
    if (lane == NULL) {
        return NULL;
    }
    lc_thread_lane_set_kind(lane, kind);
    lc_tk_source_open();
    (void)lc_tk_drawing_open();
    if (seen != NULL && !lc_call_ours(seen, NULL)) {
        return NULL;
    }
    return lc_thread_lane_peek(); /* the engine may have been stopped meanwhile */
}

/* ---- loops turned by hand ---------------------------------------------------------------- */

static void end_turn(void)
{
    lc_lane *lane = lc_thread_lane_peek();
    if (lane != NULL && !lc_lane_in_callback(lane)) {
        lc_turn_end(&lc_the_agent.watchdog.lanes, lane);
    }
}

static void end_by_hand(void)
{
    lc_own_tk.updates = 0;
    if (lc_own_tk.by_hand) {
        lc_own_tk.by_hand = false;
        end_turn();
    }
}

/* After an update() that no loop was around: the program's work up to the next one is the turn's. */
static void note_update(bool worked)
{
    lc_lane *lane = lc_thread_lane_peek();
    if (!worked) {
        end_by_hand(); /* the window is gone */
    } else if (lane != NULL && !lc_own_tk.by_hand && ++lc_own_tk.updates >= LC_TK_BY_HAND) {
        lc_own_tk.by_hand = true;
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    }
}

/* ---- adoption ---------------------------------------------------------------------------- */

static void give_up_adopted(void)
{
    if (lc_own_tk.adopted) {
        lc_own_tk.adopted = false;
        lc_wait_leave((lc_wait){0});
    }
}

PyObject *lc_tk_adopt(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    lc_lane *lane = lc_tk_lane_get(NULL);
    if (lane != NULL && !lc_own_tk.adopted && lc_own_tk.run_generation != lc_the_agent.generation) {
        (void)lc_wait_enter(lane);
        lc_own_tk.adopted = true;
        lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    }
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyObject *lc_tk_release(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    end_by_hand();
    give_up_adopted();
    lc_tk_source_close();
    lc_own_tk.generation = 0;
    Py_RETURN_NONE;
}

/* ---- the patched functions --------------------------------------------------------------- */

static PyObject *call_gone(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    end_by_hand();
    if (lc_own_tk.adopted) {
        const lc_lane *lane = lc_thread_lane_peek();
        lc_running *command = lc_running_open(lane);
        give_up_adopted();
        if (command != NULL) {
            command->bracket.own_turn = true; /* nothing else will end the turn */
        } else {
            end_turn();
        }
    }
    return result;
}

/* Whose method is called; NULL: it is none, or called in another way. */
static PyObject *widget_of(PyObject *const *args, size_t count)
{
    return PyVectorcall_NARGS(count) > 0 ? args[0] : NULL;
}

/* The result, when what Tk has shown meanwhile is told. */
static PyObject *told(PyObject *widget, PyObject *result)
{
    if (!lc_tk_tell(widget)) {
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *call_loop(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    if (patch->role != RUN && !lc_own_tk.runs_tcl) {
        return lc_patched_call_original(patch, args, count, names);
    }
    const lc_lane *lane = lc_tk_lane_get(patch->extra);
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : lc_patched_call_original(patch, args, count, names);
    }
    if (!lc_tk_tell(widget_of(args, count))) {
        return NULL;
    }
    lane = lc_thread_lane_peek();
    if (lane == NULL) { /* the listener has stopped the engine */
        return lc_patched_call_original(patch, args, count, names);
    }
    lc_running *command = lc_running_open(lane);
    const lc_loop_run run = lc_loop_run_begin(kind);
    const uint64_t outer_generation = lc_own_tk.run_generation;
    lc_own_tk.run_generation = run.generation;
    lc_own_tk.runs++;
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    lc_own_tk.runs--;
    lc_own_tk.run_generation = outer_generation;
    lc_loop_run_end(run);
    if (command != NULL) {
        lc_running_go_on(command);
    } else if (patch->role == UPDATE && lc_own_tk.runs == 0 && (!run.was_in_turn || lc_own_tk.by_hand)) {
        note_update(result != NULL);
    }
    if (patch->role == UPDATE && lc_own_tk_drawing != NULL) {
        lc_tk_drawing_updated(lc_own_tk_drawing);
    }
    return told(widget_of(args, count), result);
}

/* A frame of its own, which update_idletasks() has drawn. */
static PyObject *call_draw(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    if (lc_own_tk_drawing == NULL || !lc_own_tk.runs_tcl) {
        return result;
    }
    lc_tk_drawing_updated(lc_own_tk_drawing);
    return told(widget_of(args, count), result);
}

PyObject *lc_tk_loop(PyObject *Py_UNUSED(module), PyObject *args)
{
    static const char *const roles[] = {[RUN] = "run", [NESTED] = "nested", [UPDATE] = "update", [GONE] = "gone",
                                        [DRAW] = "draw"};
    PyObject *original, *seen;
    const char *role;
    if (!PyArg_ParseTuple(args, "OsO", &original, &role, &seen)) {
        return NULL;
    }
    for (long i = 0; i < (long)(sizeof roles / sizeof *roles); i++) {
        if (strcmp(role, roles[i]) == 0) {
            const lc_patched_call call = i == GONE ? call_gone : i == DRAW ? call_draw : call_loop;
            return lc_patched_function_new(call, original, seen, i);
        }
    }
    PyErr_Format(PyExc_ValueError, "unknown role %s", role);
    return NULL;
}
