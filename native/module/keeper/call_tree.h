/* Trees of calls, for readers: core/methods/call_tree.h as a function. */
#pragma once

#include <Python.h>

/* call_tree(read, first, end, before, opened, depth, window, most, at_work): `read(number, count)` gives
 * bytes of words, `before` is an lc_words_before, `opened` bytes of lc_open_call, `window` (begin_us,
 * end_us), `at_work` an lc_calls_at_work (work, around). Answers (rows, first_us, left_out_rows,
 * left_out_us, works, at_work); a row is (index of the row that it is in, or -1; id; calls; total_us;
 * self_us; is_open), one of the works (number; times; total_us). What `read` raises, and MemoryError. GIL
 * held. */
PyObject *lc_call_tree_of(PyObject *module, PyObject *args);
