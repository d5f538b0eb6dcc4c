#include "asyncio_loop.h"

#include "bracket.h"

static struct {
    PyObject *pristine; /* asyncio's own, once it was seen */
    PyObject *original; /* what is called inside the bracket */
    PyObject *adopt;
} asyncio_loop;

/* The loop whose run_forever is being called through `original`: where somebody has laid a patch over ours and
 * the engine was installed again, `original` is that patch and comes back here. */
static _Thread_local PyObject *calling_for;

static PyObject *call_original(PyObject *loop)
{
    if (calling_for == loop) {
        return PyObject_CallOneArg(asyncio_loop.pristine, loop);
    }
    PyObject *original = Py_NewRef(asyncio_loop.original);
    PyObject *outer = calling_for;
    calling_for = loop;
    PyObject *result = PyObject_CallOneArg(original, loop);
    calling_for = outer;
    Py_DECREF(original);
    return result;
}

static PyObject *run_forever(PyObject *loop, PyObject *unused)
{
    (void)unused;
    PyObject *adopted = PyObject_CallOneArg(asyncio_loop.adopt, loop);
    if (adopted == NULL) {
        PyErr_Clear(); /* adopt does not raise but for MemoryError and the like */
    }
    Py_XDECREF(adopted);
    lc_lane *lane = lc_thread_lane_get("asyncio");
    if (lane == NULL) {
        return call_original(loop);
    }
    const uint64_t generation = lc_the_agent.generation;
    const bool was_in_turn = lc_lane_in_turn(lane);
    lc_thread_lane_set_kind(lane, "asyncio");
    lc_bracket_interrupt(lane);
    lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
    PyObject *result = call_original(loop);
    if (LC_AGENT_RUNS(generation)) {
        lc_turn_end(&lc_the_agent.watchdog.lanes, lane);
        if (was_in_turn) {
            lc_turn_begin(&lc_the_agent.watchdog.lanes, lane);
        }
    }
    return result;
}

static PyMethodDef run_forever_method = {
    "run_forever", run_forever, METH_NOARGS,
    "run_forever($self, /)\n--\n\nRun until stop() is called; loopcanary's bracket around asyncio's own."};

PyObject *lc_asyncio_loop_method(PyObject *module, PyObject *args)
{
    PyObject *loop_type, *original, *adopt;
    int pristine;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OpO", &PyType_Type, &loop_type, &original, &pristine, &adopt)) {
        return NULL;
    }
    if (pristine || asyncio_loop.pristine == NULL) {
        Py_XSETREF(asyncio_loop.pristine, Py_NewRef(original));
    }
    Py_XSETREF(asyncio_loop.original, Py_NewRef(original));
    Py_XSETREF(asyncio_loop.adopt, Py_NewRef(adopt));
    return PyDescr_NewMethod((PyTypeObject *)loop_type, &run_forever_method);
}
