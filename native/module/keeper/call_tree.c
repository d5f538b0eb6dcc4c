/* Trees of calls, for readers: core/methods/call_tree.h as a function.
 *
 * call_tree(read, first, end, before, opened, depth, window, most, at_work): `read(number, count)` gives
 * bytes of words, `before` is an lc_words_before, `opened` bytes of lc_open_call, `window` (begin_us,
 * end_us), `at_work` an lc_calls_at_work (work, around). Answers (rows, first_us, left_out_rows,
 * left_out_us, works, at_work); a row is (index of the row that it is in, or -1; id; calls; total_us;
 * self_us; is_open), one of the works (number; times; total_us). What `read` raises, and MemoryError. GIL
 * held. */
#define PY_SSIZE_T_CLEAN
#include "module/bindings.h"

#include <string.h>

#include "core/methods/call_tree.h"

typedef struct {
    PyObject *read;
    PyThreadState *thread; /* while the GIL is let go of */
} reader;

static bool fetch(void *context, uint64_t from, uint64_t *into, size_t count)
{
    reader *r = context;
    PyEval_RestoreThread(r->thread);
    PyObject *bytes =
        PyObject_CallFunction(r->read, "KK", (unsigned long long)from, (unsigned long long)count);
    const bool fits =
        bytes != NULL && PyBytes_Check(bytes) && (size_t)PyBytes_GET_SIZE(bytes) == count * sizeof *into;
    if (fits) {
        memcpy(into, PyBytes_AS_STRING(bytes), count * sizeof *into);
    } else if (bytes != NULL) {
        PyErr_SetString(PyExc_ValueError, "call_tree(): read() gave other bytes than it was asked for");
    }
    Py_XDECREF(bytes);
    r->thread = PyEval_SaveThread();
    return fits;
}

static PyObject *rows_of(const lc_call_tree *tree)
{
    PyObject *rows = PyList_New(0);
    for (uint32_t i = 0; rows != NULL && i < tree->count; i++) {
        const lc_call_node *node = &tree->nodes[i];
        lc_append(&rows,
                  Py_BuildValue("lIKKKN", node->parent == LC_NO_NODE ? -1L : (long)node->parent, node->id,
                                (unsigned long long)node->calls, (unsigned long long)node->total_us,
                                (unsigned long long)(node->total_us - node->inner_us),
                                PyBool_FromLong(node->is_open)));
    }
    return rows;
}

static PyObject *works_of(const lc_call_tree *tree)
{
    PyObject *works = PyList_New(0);
    for (uint32_t i = 0; works != NULL && i < LC_CALLS_WORKS; i++) {
        const lc_call_work *work = &tree->works[i];
        if (work->times != 0 || work->total_us != 0) {
            lc_append(&works, Py_BuildValue("IKK", i + LC_CALLS_WORK, (unsigned long long)work->times,
                                            (unsigned long long)work->total_us));
        }
    }
    return works;
}

PyObject *lc_call_tree_of(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *read;
    const char *opened;
    Py_ssize_t opened_bytes;
    unsigned long long first, end, depth, begin_us, end_us;
    unsigned int most;
    lc_calls_at_work at_work;
    int before;
    if (!PyArg_ParseTuple(args, "OKKiy#K(KK)I(II)", &read, &first, &end, &before, &opened, &opened_bytes,
                          &depth, &begin_us, &end_us, &most, &at_work.work, &at_work.around)) {
        return NULL;
    }
    lc_open_call calls[LC_CALLS_OPEN_MAX];
    const size_t count = (size_t)opened_bytes / sizeof *calls;
    if (first > end || count > LC_CALLS_OPEN_MAX || before < LC_BEFORE_LOST || before > LC_BEFORE_READ) {
        PyErr_SetString(PyExc_ValueError,
                        "call_tree(): no such words, too many open calls, or no lc_words_before");
        return NULL;
    }
    memcpy(calls, opened, count * sizeof *calls);
    reader r = {.read = read};
    const lc_calls_window window = {fetch, &r,       first,  end,    (lc_words_before)before, calls, count,
                                    depth, begin_us, end_us, at_work};
    lc_call_tree tree;
    uint64_t left_out_rows = 0, left_out_us = 0;
    r.thread = PyEval_SaveThread();
    const bool is_built =
        lc_call_tree_build(&window, &tree) && lc_call_tree_keep(&tree, most, &left_out_rows, &left_out_us);
    PyEval_RestoreThread(r.thread);
    if (!is_built) {
        lc_call_tree_free(&tree);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    PyObject *answer = Py_BuildValue("NKKKN(II)", rows_of(&tree), (unsigned long long)tree.first_us,
                                     (unsigned long long)(left_out_rows), (unsigned long long)left_out_us,
                                     works_of(&tree), tree.at_work.work, tree.at_work.around);
    lc_call_tree_free(&tree);
    return answer;
}
