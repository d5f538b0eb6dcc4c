/* Other people's patches under a method of ours.
 *
 * Ours goes where another patch is: that one is called inside ours. If another patch is laid over ours,
 * ours must stay at uninstall, inside that patch; installed again, ours comes on top once more. One call then
 * passes through the same C function several times, and each time something else comes next: what that
 * install has found. How far down the chain a call is, its thread knows.
 *
 * GIL held in all functions.
 */
#pragma once

#include <Python.h>
#include <stdbool.h>

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

/* The method of the last install has been taken back. */
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
