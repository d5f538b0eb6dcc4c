/* The layout that the running interpreter publishes about itself: _Py_DebugOffsets, at the start of
 * _PyRuntime from CPython 3.13 on (Include/internal/pycore_debug_offsets.h, pycore_runtime.h).
 *
 * It knows better than the table what this build looks like; but it is memory like any other, so each
 * number is checked before it is used. What it does not tell stays the table's. */
#pragma once

#include <stdbool.h>

#include "cpython/layouts/layout.h"
#include "core/memory/memory_reader.h"

/* layout's name, where in _Py_DebugOffsets: member of member, and its offset in 3.13, 3.14, 3.15. */
#define LC_DEBUG_OFFSETS_TABLE(X)                                                                            \
    X(runtime_interpreters, runtime_state, interpreters_head, 40, 40, 40)                                    \
    X(interp_next, interpreter_state, next, 64, 64, 64)                                                      \
    X(interp_threads, interpreter_state, threads_head, 72, 72, 72)                                           \
    X(interp_gil, interpreter_state, ceval_gil, 112, 120, 120)                                               \
    X(thread_prev, thread_state, prev, 160, 184, 184)                                                        \
    X(thread_next, thread_state, next, 168, 192, 192)                                                        \
    X(thread_interp, thread_state, interp, 176, 200, 200)                                                    \
    X(thread_frame, thread_state, current_frame, 184, 208, 208)                                              \
    X(thread_ident, thread_state, thread_id, 192, 216, 240)                                                  \
    X(thread_native_id, thread_state, native_thread_id, 200, 224, 248)                                       \
    X(frame_previous, interpreter_frame, previous, 232, 256, 320)                                            \
    X(frame_code, interpreter_frame, executable, 240, 264, 328)                                              \
    X(frame_instr, interpreter_frame, instr_ptr, 248, 272, 336)                                              \
    X(frame_bytes, interpreter_frame, localsplus, 256, 280, 344)                                             \
    X(frame_owner, interpreter_frame, owner, 264, 288, 352)                                                  \
    X(code_filename, code_object, filename, 280, 320, 384)                                                   \
    X(code_qualname, code_object, qualname, 296, 336, 400)                                                   \
    X(code_linetable, code_object, linetable, 304, 344, 408)                                                 \
    X(code_first_line, code_object, firstlineno, 312, 352, 416)                                              \
    X(code_bytes, code_object, co_code_adaptive, 344, 384, 448)

/* Puts the interpreter's numbers in place of the layout's. A version that publishes none keeps
 * the table's. False, with a reason of static lifetime, if what is there cannot be right. */
bool lc_debug_offsets_apply(lc_layout *layout, const lc_memory_reader *reader, uint64_t runtime,
                            uint64_t version_hex, const char **why_not);
