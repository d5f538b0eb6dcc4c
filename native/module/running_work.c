#include "module/running_work.h"

#include "cpython/names/member_offset.h"

#define PARTIALS_MAX 8

_Thread_local lc_running *lc_innermost_running __attribute__((tls_model("initial-exec")));

lc_running *lc_running_open(const lc_lane *lane)
{
    lc_running *running = lc_innermost_running;
    const bool is_open = running != NULL && lane != NULL && running->bracket.lane == lane &&
                         LC_AGENT_RUNS(running->bracket.generation) && lc_lane_in_callback(lane) &&
                         LC_LOAD(lane->epoch) == running->bracket.epoch;
    return is_open ? running : NULL;
}

void lc_running_go_on(lc_running *running)
{
    lc_lane *lane = running->bracket.lane;
    if (LC_AGENT_RUNS(running->bracket.generation) && lc_lane_in_turn(lane) && !lc_lane_in_callback(lane)) {
        lc_callback_begin(lane, lc_note_word(&running->note), 0);
        running->bracket.epoch = LC_LOAD(lane->epoch);
    }
}

static struct {
    PyTypeObject *type;  /* NULL: not known */
    Py_ssize_t function; /* offset */
} partials;

PyObject *lc_inside_partials(PyObject *function)
{
    for (int depth = 0; depth < PARTIALS_MAX && partials.type != NULL && Py_IS_TYPE(function, partials.type);
         depth++) {
        PyObject *inner = *(PyObject **)((char *)function + partials.function);
        if (inner == NULL) {
            break;
        }
        function = inner;
    }
    return function;
}

void lc_learn_partial(PyTypeObject *type)
{
    const uint32_t offset = lc_member_offset((PyObject *)type, "func");
    if (offset != 0) {
        partials.function = offset;
        Py_XSETREF(partials.type, (PyTypeObject *)Py_NewRef(type));
    }
}
