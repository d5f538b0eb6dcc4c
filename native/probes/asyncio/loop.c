#include "probes/asyncio/asyncio.h"

#include "module/bracket.h"

static struct {
    PyObject *pristine; /* asyncio's own; where it was patched when first seen, that patch */
    lc_patch_chain chain;
    PyObject *adopt;
} asyncio_loop;

static _Thread_local lc_patch_place place_in_chain;

static PyObject *call_original(PyObject *loop)
{
    PyObject *result = lc_patch_chain_call(&asyncio_loop.chain, &place_in_chain, loop);
    return result == NULL && !PyErr_Occurred() ? PyObject_CallOneArg(asyncio_loop.pristine, loop) : result;
}

static PyObject *run_forever(PyObject *loop, PyObject *Py_UNUSED(unused))
{
    lc_lane *lane = lc_call_ours(asyncio_loop.adopt, loop) ? lc_thread_lane_get("asyncio") : NULL;
    if (lane == NULL) {
        return PyErr_Occurred() ? NULL : call_original(loop);
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

PyObject *lc_asyncio_loop_method(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *loop_type, *original, *adopt;
    int pristine;
    if (!PyArg_ParseTuple(args, "O!OpO", &PyType_Type, &loop_type, &original, &pristine, &adopt)) {
        return NULL;
    }
    if (pristine || asyncio_loop.pristine == NULL) {
        Py_XSETREF(asyncio_loop.pristine, Py_NewRef(original));
    }
    if (!lc_patch_chain_push(&asyncio_loop.chain, pristine ? NULL : original)) {
        return NULL;
    }
    Py_XSETREF(asyncio_loop.adopt, Py_NewRef(adopt));
    return PyDescr_NewMethod((PyTypeObject *)loop_type, &run_forever_method);
}

PyObject *lc_asyncio_loop_forget(PyObject *Py_UNUSED(module), PyObject *taken_back)
{
    if (PyObject_IsTrue(taken_back) == 1) {
        lc_patch_chain_pop(&asyncio_loop.chain);
    }
    Py_RETURN_NONE;
}
