/* What of asyncio is replaced: Handle._run, BaseEventLoop.run_forever, and the selector's wait. GIL held. */
#pragma once

#include <Python.h>
#include <stdbool.h>

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* ---- handle.c: Handle._run in C: what the original does, and the callback's bracket around it ------ */

/* asyncio_handle_method(handle_type, timer_type, original, describe, adopt, sites, globals) -> method
 * descriptor
 *
 * handle_type  asyncio.events.Handle
 * timer_type   asyncio.events.TimerHandle
 * original     None to replace the original `_run`; or the `_run` that other code put there: it is called
 *              inside the bracket instead
 * describe     describe(handle, exception) -> what the loop's exception handler is given
 * adopt        adopt(loop): called once per thread, with the loop whose handle is the first seen on it
 * sites        (code, (lasti, line), (lasti, line)) of the original's calls of callback and exception
 *              handler, for tracebacks; code None where the original is not asyncio's own
 * globals      of the original, for tracebacks
 */
PyObject *lc_asyncio_handle_method(PyObject *module, PyObject *args);

/* asyncio_handle_forget(taken_back): forgets what asyncio_handle_method was given last. `taken_back`:
 * whether the method could be taken out again, or another patch lies over it. */
PyObject *lc_asyncio_handle_forget(PyObject *module, PyObject *taken_back);

/* ---- loop.c: run_forever, bracketed: the loop's first and last turn, and loops inside loops -------- */

/* asyncio_loop_method(loop_type, original, pristine, adopt) -> method descriptor
 *
 * original  the run_forever that is called inside
 * pristine  whether that is asyncio's own
 * adopt     adopt(loop): brackets the loop's wait, before it runs; must not raise */
PyObject *lc_asyncio_loop_method(PyObject *module, PyObject *args);

/* asyncio_loop_forget(taken_back): as asyncio_handle_forget. */
PyObject *lc_asyncio_loop_forget(PyObject *module, PyObject *taken_back);

/* ---- turn_select.c: the wait of a selector loop, bracketed ----------------------------------------- */

/* Adds the type TurnSelect(selector, select, spins, is_epoll=False) to the module. */
int lc_turn_select_add(PyObject *module);

/* ---- site.c: who scheduled a callback, where asyncio knows: in its debug mode ---------------------- */

/* What is asked of asyncio: its Handle type, and the globals of asyncio.events, which say where asyncio
 * lies. GIL held. Where it is not as it was known, nothing is answered later. No exception is left set. */
void lc_asyncio_site_learn(PyObject *handle_type, PyObject *events_globals);

/* The innermost place outside of asyncio's own files where a handle was made; of the step of a task, where
 * the task was. As lc_site_of; 0: asyncio did not note it. What it names is the file's name of a code object,
 * which lives as long as that.
 *
 * GIL held, the handle's own thread, before the handle runs. Without debug mode one load. No exception is
 * left set. */
uint64_t lc_asyncio_site_of(PyObject *handle, PyObject *callback);

/* ---- patches of others ------------------------------------------------------------------------------
 * Other people's patches under a method of ours.
 *
 * Ours goes where another patch is: that one is called inside ours. If another patch is laid over ours,
 * ours must stay at uninstall, inside that patch; installed again, ours comes on top once more. One call then
 * passes through the same C function several times, and each time something else comes next: what that
 * install has found. How far down the chain a call is, its thread knows.
 *
 * GIL held in all functions. */

typedef struct {
    PyObject *patches; /* list of what was found by installs whose method is still in the chain, oldest first;
                          NULL: no other patch was found */
} lc_patch_chain;

/* Where in the chain this thread is, for one object's call. */
typedef struct {
    PyObject *object;
    Py_ssize_t level;
} lc_patch_place;

/* An install has found `patch`; NULL: the library's own method, so that no older one of ours is in use. */
static inline bool lc_patch_chain_push(lc_patch_chain *chain, PyObject *patch)
{
    if (patch == NULL) {
        Py_CLEAR(chain->patches);
        return true;
    }
    if (chain->patches == NULL) {
        chain->patches = PyList_New(0);
    }
    return chain->patches != NULL && PyList_Append(chain->patches, patch) == 0;
}

static inline void lc_patch_chain_pop(lc_patch_chain *chain)
{
    const Py_ssize_t count = chain->patches ? PyList_GET_SIZE(chain->patches) : 0;
    if (count > 0 && PyList_SetSlice(chain->patches, count - 1, count, NULL) != 0) {
        PyErr_Clear();
    }
}

/* Calls patch(object) for the next patch below; NULL without an exception: there is none, it is the library's
 * own method's turn. */
static inline PyObject *lc_patch_chain_call(const lc_patch_chain *chain, lc_patch_place *place,
                                            PyObject *object)
{
    Py_ssize_t level = chain->patches ? PyList_GET_SIZE(chain->patches) : 0;
    if (place->object == object && place->level < level) {
        level = place->level;
    }
    if (level == 0) {
        return NULL;
    }
    PyObject *patch = Py_NewRef(PyList_GET_ITEM(chain->patches, level - 1));
    const lc_patch_place outer = *place;
    *place = (lc_patch_place){object, level - 1};
    PyObject *result = PyObject_CallOneArg(patch, object);
    *place = outer;
    Py_DECREF(patch);
    return result;
}
