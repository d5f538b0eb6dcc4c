/* Every number of the column of layout.h that belongs to the CPython this is compiled for, against
 * its internal headers. The only file of the walker that sees them, and it makes no code.
 *
 * When an assertion fails for a new CPython: read the structure's history in Include/internal, decide
 * whether only the offset moved (then a new column is all) or the meaning did (then walker.c and
 * docs/internals/walker.md are to be read again first). */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1
#include <Python.h>

#include <pthread.h>
#include <stddef.h>

/* Their inline functions are CPython's business. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_gil.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_interpframe.h"
#include "internal/pycore_interpframe_structs.h"
#include "internal/pycore_tstate.h"
#endif
#pragma GCC diagnostic pop

#include "cpython/layouts/layout.h"

#define PICK(v311, v312, v313, v314, v315) PICK_VERSION(v311, v312, v313, v314, v315)
#if PY_VERSION_HEX >> 16 == 0x030B
#define PICK_VERSION(v311, v312, v313, v314, v315) v311
#elif PY_VERSION_HEX >> 16 == 0x030C
#define PICK_VERSION(v311, v312, v313, v314, v315) v312
#elif PY_VERSION_HEX >> 16 == 0x030D
#define PICK_VERSION(v311, v312, v313, v314, v315) v313
#elif PY_VERSION_HEX >> 16 == 0x030E
#define PICK_VERSION(v311, v312, v313, v314, v315) v314
#elif PY_VERSION_HEX >> 16 == 0x030F
#define PICK_VERSION(v311, v312, v313, v314, v315) v315
#endif

#if defined(PICK_VERSION) && !defined(Py_GIL_DISABLED)

enum {
#define ROW(name, v311, v312, v313, v314, v315) row_##name = (int)PICK(v311, v312, v313, v314, v315),
    LC_LAYOUT_TABLE(ROW)
#undef ROW
};

#define IS(name, value)                                                                                      \
    _Static_assert(row_##name == (int)(value), "layout.h: " #name " is " #value " of this CPython")
#define AT(name, type, field) IS(name, offsetof(type, field))

/* The same words in every version. */
AT(thread_prev, PyThreadState, prev);
AT(thread_next, PyThreadState, next);
AT(thread_interp, PyThreadState, interp);
AT(thread_native_id, PyThreadState, native_thread_id);
AT(thread_ident, PyThreadState, thread_id);
AT(runtime_interpreters, _PyRuntimeState, interpreters.head);
AT(interp_next, PyInterpreterState, next);
AT(interp_threads, PyInterpreterState, threads.head);
AT(gil_last_holder, struct _gil_runtime_state, last_holder);
AT(gil_locked, struct _gil_runtime_state, locked);
AT(gil_wait, struct _gil_runtime_state, cond);
_Static_assert(sizeof(struct _gil_runtime_state) ==
                   row_gil_wait + 2 * (sizeof(pthread_cond_t) + sizeof(pthread_mutex_t)),
               "gil.c: two pairs of condition variable and mutex end the GIL's state");
AT(frame_bytes, _PyInterpreterFrame, localsplus);
AT(frame_previous, _PyInterpreterFrame, previous);
AT(frame_owner, _PyInterpreterFrame, owner);
IS(owner_generator, FRAME_OWNED_BY_GENERATOR);
IS(owner_frame_object, FRAME_OWNED_BY_FRAME_OBJECT);
AT(code_names, PyCodeObject, co_names);
AT(code_exceptions, PyCodeObject, co_exceptiontable);
AT(code_stack_size, PyCodeObject, co_stacksize);
AT(code_locals, PyCodeObject, co_nlocalsplus);
AT(weakref_object, PyWeakReference, wr_object);
AT(code_flags, PyCodeObject, co_flags);
AT(code_first_line, PyCodeObject, co_firstlineno);
AT(code_filename, PyCodeObject, co_filename);
AT(code_qualname, PyCodeObject, co_qualname);
AT(code_linetable, PyCodeObject, co_linetable);
AT(code_first_traceable, PyCodeObject, _co_firsttraceable);
AT(code_bytes, PyCodeObject, co_code_adaptive);
AT(object_type, PyObject, ob_type);
AT(var_size, PyVarObject, ob_size);
AT(tuple_items, PyTupleObject, ob_item);
AT(bytes_data, PyBytesObject, ob_sval);
AT(str_length, PyASCIIObject, length);
AT(str_state, PyASCIIObject, state);
IS(str_ascii_data, sizeof(PyASCIIObject));
IS(str_compact_data, sizeof(PyCompactUnicodeObject));
AT(function_qualname, PyFunctionObject, func_qualname);
AT(method_function, PyMethodObject, im_func);
AT(method_self, PyMethodObject, im_self);
AT(cfunction_def, PyCFunctionObject, m_ml);
AT(cfunction_self, PyCFunctionObject, m_self);
AT(generator_qualname, PyGenObject, gi_qualname);
AT(generator_frame, PyGenObject, gi_iframe);
AT(generator_state, PyGenObject, gi_frame_state);
IS(state_created, FRAME_CREATED);
IS(state_executing, FRAME_EXECUTING);
AT(type_name, PyTypeObject, tp_name);
AT(type_base, PyTypeObject, tp_base);
AT(type_methods, PyTypeObject, tp_methods);
AT(type_basic_size, PyTypeObject, tp_basicsize);
AT(type_flags, PyTypeObject, tp_flags);
AT(type_shared_keys, PyHeapTypeObject, ht_cached_keys);
_Static_assert(offsetof(PyDictKeysObject, dk_log2_index_bytes) == LC_DICT_INDEX_BITS &&
                   offsetof(PyDictKeysObject, dk_kind) == LC_DICT_KIND &&
                   offsetof(PyDictKeysObject, dk_nentries) == LC_DICT_USED &&
                   offsetof(PyDictKeysObject, dk_indices) == LC_DICT_INDEX &&
                   offsetof(PyDictObject, ma_keys) == LC_DICT_KEYS &&
                   offsetof(PyDictObject, ma_values) == LC_DICT_KEYS + 8 &&
                   (int)DICT_KEYS_GENERAL == (int)LC_DICT_GENERAL &&
                   (int)DICT_KEYS_UNICODE == (int)LC_DICT_NAMES && (int)DICT_KEYS_SPLIT == (int)LC_DICT_SPLIT,
               "layout.h, attributes.h: a dict's keys");
_Static_assert(sizeof(PyDictUnicodeEntry) == 16 && offsetof(PyDictUnicodeEntry, me_key) == 0,
               "attributes.c: shared keys");
_Static_assert(sizeof(_Py_CODEUNIT) == 2, "walker.c: a code unit has two bytes");
_Static_assert(offsetof(PyMethodDef, ml_name) == 0, "work.c: the name comes first");

/* What differs between versions. */
#if PY_VERSION_HEX < 0x030D0000
AT(thread_frame, PyThreadState, cframe);
AT(cframe_frame, _PyCFrame, current_frame);
AT(frame_code, _PyInterpreterFrame, f_code);
AT(frame_instr, _PyInterpreterFrame, prev_instr);
AT(thread_end_data, PyThreadState, on_delete_data);
#else
AT(thread_frame, PyThreadState, current_frame);
AT(frame_code, _PyInterpreterFrame, f_executable);
AT(frame_instr, _PyInterpreterFrame, instr_ptr);
#endif

#if PY_VERSION_HEX < 0x030C0000
AT(runtime_gil, _PyRuntimeState, ceval.gil);
AT(interp_modules, PyInterpreterState, modules);
AT(frame_entry, _PyInterpreterFrame, is_entry);
IS(owner_end, FRAME_OWNED_BY_FRAME_OBJECT + 1);
AT(long_tag, PyVarObject, ob_size);
AT(long_digits, PyLongObject, ob_digit);
#else
AT(interp_gil, PyInterpreterState, ceval.gil);
AT(interp_modules, PyInterpreterState, imports.modules);
AT(code_version, PyCodeObject, co_version);
AT(long_tag, PyLongObject, long_value.lv_tag);
AT(long_digits, PyLongObject, long_value.ob_digit);
#endif

#if PY_VERSION_HEX < 0x030E0000
AT(dict_keys, PyDictObject, ma_keys);
_Static_assert(offsetof(PyDictKeyEntry, me_key) == 8 && offsetof(PyDictKeyEntry, me_value) == 16,
               "work_words.c: an entry of a dict");
AT(frame_stack, _PyInterpreterFrame, stacktop);
IS(frame_stack_bytes, sizeof(int));
#else
AT(frame_stack, _PyInterpreterFrame, stackpointer);
IS(frame_stack_bytes, sizeof(_PyStackRef *));
IS(frame_tags, Py_TAG_BITS);
_Static_assert(offsetof(_PyThreadStateImpl, asyncio_running_task) ==
                   offsetof(_PyThreadStateImpl, asyncio_running_loop) + sizeof(PyObject *),
               "work_words.c: the task's word follows its loop's");
_Static_assert(sizeof(PyMutex) == 1 && _Py_LOCKED == 1 && _Py_HAS_PARKED == 2,
               "lock_waited.c: bits of a lock");
IS(owner_shim, FRAME_OWNED_BY_INTERPRETER);
#endif
#if PY_VERSION_HEX >> 16 == 0x030C || PY_VERSION_HEX >> 16 == 0x030D
IS(owner_shim, FRAME_OWNED_BY_CSTACK);
IS(owner_end, FRAME_OWNED_BY_CSTACK + 1);
#elif PY_VERSION_HEX >> 16 == 0x030E
IS(owner_end, FRAME_OWNED_BY_CSTACK + 1);
#elif PY_VERSION_HEX >= 0x030F0000
IS(owner_end, FRAME_OWNED_BY_INTERPRETER + 1);
#endif

/* Where _Py_DebugOffsets itself keeps what debug_offsets.c takes from it. */
#if PY_VERSION_HEX >= 0x030D0000
enum {
#define DEBUG_ROW(name, struct_name, field, v313, v314, v315) debug_##name = PICK(0, 0, v313, v314, v315),
    LC_DEBUG_OFFSETS_TABLE(DEBUG_ROW)
#undef DEBUG_ROW
};
#define DEBUG_CHECK(name, struct_name, field, v313, v314, v315)                                              \
    _Static_assert(debug_##name == offsetof(_Py_DebugOffsets, struct_name.field), "layout.h:"                \
                                                                                  " " #name);
LC_DEBUG_OFFSETS_TABLE(DEBUG_CHECK)
#undef DEBUG_CHECK
_Static_assert(offsetof(_PyRuntimeState, debug_offsets) == 0, "they open _PyRuntime");
#endif

#endif

typedef int lc_layout_check_makes_no_code; /* ISO C wants a translation unit to declare something */
