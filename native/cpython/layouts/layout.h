/* Where CPython keeps what the walker reads: one table, a line for each fact, a column for each
 * version. The walker's logic has no version in it; a new CPython is a new column.
 *
 * Three things keep the table honest: layout_check.c asserts every number against the internal
 * headers of the CPython that the extension is compiled for; from 3.13 on, debug_offsets.c puts what
 * the running interpreter publishes in place of the table's numbers; and self_test.c walks
 * the thread that opens the source and compares with what the public API says, because a patch release
 * or a distribution's build can differ from the headers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/memory/memory_reader.h"

#define LC_ABSENT UINT32_MAX /* this version has no such thing */

/* Offsets in bytes unless said otherwise; LP64 (x86-64 and aarch64 agree on all of them).
 *
 *   thread_frame     where the thread state leads to its innermost frame...
 *   cframe_frame     ...if through a _PyCFrame on the C stack (3.11, 3.12): where in it
 *   interp_gil       pointer to the GIL's state, from 3.12; before, runtime_gil is the state itself
 *   frame_bytes      up to the locals: all that is ever read of a frame
 *   frame_instr      3.11, 3.12: prev_instr, the last instruction begun; from 3.13: instr_ptr, the
 *                    current one. For a position both are looked up the same way
 *   opcodes          kind of each opcode (layout_opcodes.c), for frames whose words do not tell what they
 *                    do; NULL: not known
 *   frame_tags       low bits of f_executable that are not address (a _PyStackRef from 3.14)
 *   frame_entry      3.11: 1 where C code called the frame; later a shim lies between
 *   owner_generator  value of `owner` of a frame inside a generator object
 *   owner_shim       lowest value of `owner` of frames that are no Python code: an eval loop's entry
 *                    frame (3.12+), the interpreter's base frame (3.14+)
 *   owner_end        one past the highest value
 *   shim_ends_chain  1: the outermost frame of a chain is a shim, always; 0: it is one that no
 *                    generator owns
 *   code_version     a number that no other code object of the process has had; 0: they ran out
 *   str_*_shift      bit positions in the state word
 *   thread_end_data  3.11, 3.12: weak reference to the lock that the thread lets go of when it ends
 *   dict_keys        before 3.14: for the dict in which asyncio keeps its current tasks (later they are in
 *                    the thread states, where patch releases have moved them: asyncio_facts.c finds the
 *                    place)
 *   code_locals      number of slots before the value stack; code_stack_size: of slots in it
 *   values_before    how far before an instance of a Python class the pointer to its attributes is, to
 *                    which values_tag is to be added; from 3.13 on they are behind the instance
 *   values_first     where in them the first one is
 *   type_shared_keys pointer to the keys of the attributes of a Python class's instances
 *   with_words       what a `with` block keeps on the value stack: the bound __exit__, or from 3.14
 *                    on the method descriptor and the lock
 *   lock_*, rlock_*, handle_*   private to Modules/_threadmodule.c: checked by lock_learn.c at the start
 *   lock_semaphore   pointer to the sem_t that a lock and an RLock are; from 3.14: lock_mutex, a PyMutex
 *   interp_modules   sys.modules
 *   generator_state  one signed byte. Between state_created and state_executing, both excluded, are the values
 *                    of a generator that is suspended
 *   awaited_slot     what a suspended coroutine awaits, counted from the top of its value stack (_PyGen_yf in
 *                    Objects/genobject.c)
 *   long_digits_shift, long_sign_mask   of lv_tag; 3.11 has ob_size instead, whose sign is the sign
 */
/* clang-format off */
#define LC_LAYOUT_TABLE(X)                                                     \
    /* fact                       3.11       3.12       3.13  3.14  3.15 */    \
    X(thread_prev,                   0,         0,         0,    0,    0)      \
    X(thread_next,                   8,         8,         8,    8,    8)      \
    X(thread_interp,                16,        16,        16,   16,   16)      \
    X(thread_frame,                 56,        56,        72,   72,   72)      \
    X(thread_native_id,            160,       144,       160,  160,  184)      \
    X(thread_ident,                152,       136,       152,  152,  176)      \
    X(thread_end_data,             192,       176, LC_ABSENT, LC_ABSENT, LC_ABSENT) \
    X(cframe_frame,                  8,         0, LC_ABSENT, LC_ABSENT, LC_ABSENT) \
    X(runtime_interpreters,         40,        40,       632,  808,  936)      \
    X(runtime_gil,                 360, LC_ABSENT, LC_ABSENT, LC_ABSENT, LC_ABSENT) \
    X(interp_next,                   0,         0,      7264, 7272, 7264)      \
    X(interp_threads,               16,        72,      7344, 7344, 7336)      \
    X(interp_gil,            LC_ABSENT,       384,        16,   16,   16)      \
    X(interp_modules,              888,       944,      7656, 7688, 7592)      \
    X(gil_last_holder,               8,         8,         8,    8,    8)      \
    X(gil_locked,                   16,        16,        16,   16,   16)      \
    X(gil_wait,                     32,        32,        32,   32,   32)      \
    X(frame_bytes,                  72,        72,        72,   80,   80)      \
    X(frame_code,                   32,         0,         0,    0,    0)      \
    X(frame_previous,               48,         8,         8,    8,    8)      \
    X(frame_instr,                  56,        56,        56,   56,   56)      \
    X(frame_stack,                  64,        64,        64,   64,   64)      \
    X(frame_stack_bytes,             4,         4,         4,    8,    8)      \
    X(frame_entry,                  68, LC_ABSENT, LC_ABSENT, LC_ABSENT, LC_ABSENT) \
    X(frame_owner,                  69,        70,        70,   74,   74)      \
    X(frame_tags,                    0,         0,         0,    3,    3)      \
    X(owner_generator,               1,         1,         1,    1,    1)      \
    X(owner_frame_object,            2,         2,         2,    2,    2)      \
    X(owner_shim,                    3,         3,         3,    3,    3)      \
    X(owner_end,                     3,         4,         4,    5,    4)      \
    X(shim_ends_chain,               0,         1,         1,    1,    1)      \
    X(code_names,                   32,        32,        32,   32,   32)      \
    X(code_exceptions,              40,        40,        40,   40,   40)      \
    X(code_stack_size,              68,        64,        64,   64,   64)      \
    X(code_locals,                  76,        72,        72,   72,   72)      \
    X(code_flags,                   48,        48,        48,   48,   48)      \
    X(code_first_line,              72,        68,        68,   68,   68)      \
    X(code_version,          LC_ABSENT,        92,        92,   92,   92)      \
    X(code_filename,               112,       112,       112,  112,  112)      \
    X(code_qualname,               128,       128,       128,  128,  128)      \
    X(code_linetable,              136,       136,       136,  136,  136)      \
    X(code_first_traceable,        168,       176,       184,  192,  192)      \
    X(code_bytes,                  184,       192,       200,  208,  208)      \
    X(object_type,                   8,         8,         8,    8,    8)      \
    X(var_size,                     16,        16,        16,   16,   16)      \
    X(tuple_items,                  24,        24,        24,   32,   32)      \
    X(bytes_data,                   32,        32,        32,   32,   32)      \
    X(str_length,                   16,        16,        16,   16,   16)      \
    X(str_state,                    32,        32,        32,   32,   32)      \
    X(str_kind_shift,                2,         2,         2,    2,    2)      \
    X(str_compact_shift,             5,         5,         5,    5,    5)      \
    X(str_ascii_shift,               6,         6,         6,    6,    6)      \
    X(str_ascii_data,               48,        40,        40,   40,   40)      \
    X(str_compact_data,             72,        56,        56,   56,   56)      \
    X(long_tag,                     16,        16,        16,   16,   16)      \
    X(long_digits,                  24,        24,        24,   24,   24)      \
    X(long_digits_shift,             0,         3,         3,    3,    3)      \
    X(long_sign_mask,                0,         3,         3,    3,    3)      \
    X(function_qualname,            40,        40,        40,   40,   40)      \
    X(method_function,              16,        16,        16,   16,   16)      \
    X(method_self,                  24,        24,        24,   24,   24)      \
    X(cfunction_def,                16,        16,        16,   16,   16)      \
    X(cfunction_self,               24,        24,        24,   24,   24)      \
    X(values_before,                32,        24, LC_ABSENT, LC_ABSENT, LC_ABSENT) \
    X(values_tag,                    0,         1,         0,    0,    0)      \
    X(values_first,                  0,         0,         8,    8,    8)      \
    X(type_basic_size,              32,        32,        32,   32,   32)      \
    X(type_flags,                  168,       168,       168,  168,  168)      \
    X(type_shared_keys,            872,       880,       880,  880,  888)      \
    X(dict_keys,                    32,        32,        32, LC_ABSENT, LC_ABSENT) \
    X(with_words,                    1,         1,         1,    2,    2)      \
    X(lock_semaphore,               16,        16,        16, LC_ABSENT, LC_ABSENT) \
    X(lock_mutex,            LC_ABSENT, LC_ABSENT, LC_ABSENT,   16,   16)      \
    X(rlock_owner,                  24,        24,        24,   24,   24)      \
    X(handle_pointer,        LC_ABSENT, LC_ABSENT,        16,   16,   16)      \
    X(handle_ident,          LC_ABSENT, LC_ABSENT,        32,   32,   32)      \
    X(weakref_object,               16,        16,        16,   16,   16)      \
    X(generator_qualname,           40,        32,        32,   32,   32)      \
    X(generator_frame,              80,        72,        72,   72,   72)      \
    X(generator_state,              75,        67,        67,   67,   67)      \
    X(state_created,                -2,        -2,        -3,   -3,    0)      \
    X(state_executing,               0,         0,         0,    0,    4)      \
    X(type_name,                    24,        24,        24,   24,   24)      \
    X(awaited_slot,                  1,         1,         1,    1,    2)      \
    X(type_methods,                232,       232,       232,  232,  232)      \
    X(type_base,                   256,       256,       256,  256,  256)
/* clang-format on */

/* Of a dict's keys. LC_DICT_GENERAL is the kind whose keys are any objects; LC_DICT_NAMES: strings; LC_DICT_SPLIT:
 * strings, whose values are in the instances that share the keys. */
enum {
    LC_DICT_INDEX_BITS = 9,
    LC_DICT_KIND = 10,
    LC_DICT_USED = 24,
    LC_DICT_INDEX = 32,
    LC_DICT_GENERAL = 0,
    LC_DICT_NAMES = 1,
    LC_DICT_SPLIT = 2,
    LC_DICT_KEYS = 32 /* in the dict itself: where its keys are */
};

typedef struct {
    uint32_t version; /* major << 8 | minor */
#define LC_LAYOUT_FIELD(name, v311, v312, v313, v314, v315) uint32_t name;
    LC_LAYOUT_TABLE(LC_LAYOUT_FIELD)
#undef LC_LAYOUT_FIELD
    const uint8_t *opcodes; /* only of the interpreter that this is compiled for, in its own process */
} lc_layout;

/* The column of a CPython version, by its PY_VERSION_HEX; NULL where there is none, or where it is
 * before the release (alphas and betas move fields around). */
const lc_layout *lc_layout_find(uint64_t version_hex);

/* Whether all that is read lies inside what is copied: asked after offsets came from elsewhere. */
bool lc_layout_sane(const lc_layout *layout);

/* Upper bounds that every layout keeps, so that copies have fixed sizes; asserted in layouts.c. */
#define LC_FRAME_BYTES_MAX 96u
#define LC_CODE_HEADER_MAX 256u
#define LC_THREAD_HEADER_MAX 256u
#define LC_GIL_HEADER_MAX 32u

/* What a frame does, by the instruction that it is at: from 3.14 on, where no word of the frame tells it. */
enum {
    LC_OPCODE_RUNS = 0,   /* is no call, or one of C code */
    LC_OPCODE_CALLS = 1,  /* calls Python code, without C between */
    LC_OPCODE_EITHER = 2, /* calls, what is not known */
    LC_OPCODE_ENDS = 3    /* the frame ends with it, or is suspended */
};

/* By opcode, for the CPython this is compiled for; NULL before 3.14. */
extern const uint8_t *const lc_opcodes;

/* ---- debug_offsets.c --------------------------------------------------------------------------------
 * The layout that the running interpreter publishes about itself: _Py_DebugOffsets, at the start of
 * _PyRuntime from CPython 3.13 on (Include/internal/pycore_debug_offsets.h, pycore_runtime.h).
 *
 * It knows better than the table what this build looks like; but it is memory like any other, so each
 * number is checked before it is used. What it does not tell stays the table's. */

/* layout's name, where in _Py_DebugOffsets: member of member, and its offset in 3.13, 3.14, 3.15. */
#define LC_DEBUG_OFFSETS_TABLE(X)                                                                            \
    X(runtime_interpreters, runtime_state, interpreters_head, 40, 40, 40)                                    \
    X(interp_next, interpreter_state, next, 64, 64, 64)                                                      \
    X(interp_threads, interpreter_state, threads_head, 72, 72, 72)                                           \
    X(interp_gil, interpreter_state, ceval_gil, 112, 120, 120)                                               \
    X(interp_modules, interpreter_state, imports_modules, 88, 96, 96)                                        \
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
