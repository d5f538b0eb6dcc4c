#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/source/cpython_source.h"

#include "cpython/locks/locks.h"

/* Exported by every CPython (PyAPI_DATA in Include/internal/pycore_runtime.h); only its address is taken. */
extern struct pyruntimestate _PyRuntime;

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }

static lc_interpreter_addresses addresses(void)
{
    return (lc_interpreter_addresses){
        .runtime = address_of(&_PyRuntime),
        .interp = address_of(PyThreadState_GetInterpreter(PyThreadState_Get())),
        .code_type = address_of(&PyCode_Type),
        .str_type = address_of(&PyUnicode_Type),
        .bytes_type = address_of(&PyBytes_Type),
        .int_type = address_of(&PyLong_Type),
        .function_type = address_of(&PyFunction_Type),
        .method_type = address_of(&PyMethod_Type),
        .cfunction_type = address_of(&PyCFunction_Type),
        .coroutine_type = address_of(&PyCoro_Type),
        .generator_type = address_of(&PyGen_Type),
        .tuple_type = address_of(&PyTuple_Type),
        .list_type = address_of(&PyList_Type),
        .dict_type = address_of(&PyDict_Type),
    };
}

/* Builds that change what objects look like without changing the version. */
static const char *unsupported_build(void)
{
#ifdef Py_GIL_DISABLED
    return "free-threaded builds of CPython are not supported by the native walker";
#endif
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
        return "the extension was built for another version of CPython";
    }
    if (sizeof(void *) != 8 || sizeof(PyObject) != 2 * sizeof(void *)) {
        return "only 64-bit builds of CPython without Py_TRACE_REFS are supported by the native walker";
    }
    return NULL;
}

bool lc_cpython_source_open(lc_cpython_source *source, const lc_memory_reader *reader, const char **why_not)
{
    *source = (lc_cpython_source){0};
    *why_not = unsupported_build();
    if (*why_not != NULL) {
        return false;
    }
    const lc_layout *known = lc_layout_find(Py_Version);
    if (known == NULL) {
        *why_not = "this version of CPython is not known to the native walker (3.11 to 3.15 are)";
        return false;
    }
    const lc_interpreter_addresses at = addresses();
    lc_layout layout = *known;
    layout.opcodes = lc_opcodes;
    if (!lc_debug_offsets_apply(&layout, reader, at.runtime, Py_Version, why_not)) {
        return false;
    }
    if (!lc_cpython_source_init(source, reader, &layout, &at)) {
        *why_not = "no memory for the native walker";
        return false;
    }
    if (!lc_self_test(source, why_not)) {
        lc_cpython_source_close(source);
        return false;
    }
    lc_locks_learn(source);
    return true;
}
