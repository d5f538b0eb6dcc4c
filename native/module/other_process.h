/* Binds native/cpython/source/outside.h: the interpreter of another process, read from outside.
 *
 *   outside_open(pid, version_hex, addresses) -> handle      RuntimeError: why that CPython cannot be read
 *   outside_threads(handle) -> [(interpreter, thread, tid)]  of all interpreters; also learns their locks
 *   outside_stack(handle, thread) -> (result, truncated, inner_cut, frames)
 *                                frames: (qualname, file, line, end_line, column, end_column, first_line,
 *                                flags)
 *   outside_name(handle, thread, tid) -> str    as `threading` has it, empty unknown
 *   outside_gil(handle, thread) -> (state, holder_tid, wait_low, wait_high)
 *   outside_lock(handle, thread, futex) -> (kind, proof, holder_tid, module)
 *
 * `addresses`: a dict of the names in OUTSIDE_SYMBOLS, with the addresses that they have in that process.
 * Results, states and kinds are the numbers of the C enums. GIL held throughout. */
#pragma once

#include <Python.h>

int lc_other_process_add(PyObject *module);
