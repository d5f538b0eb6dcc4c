/* Trees of calls, for readers: core/methods/call_tree.h as a function. */
#ifndef LOOPCANARY_MODULE_CALL_TREE_H
#define LOOPCANARY_MODULE_CALL_TREE_H

#include <Python.h>

/* call_tree(read, first, end, before, opened, depth, window, most): `read(number, count)` gives bytes of words, `before` is an lc_words_before, `opened` bytes
 * of lc_open_call, `window` (begin_us, end_us). Answers (rows, first_us, left_out_rows, left_out_us); a row is (index of the row that
 * it is in, or -1; id; calls; total_us; self_us; is_open). What `read` raises, and MemoryError. GIL held. */
PyObject *lc_call_tree_of(PyObject *module, PyObject *args);

#endif
