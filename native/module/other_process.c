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
#define PY_SSIZE_T_CLEAN
#include "module/bindings.h"

#include <stddef.h>

#include "module/other_process.h"

static const char capsule_name[] = LC_OTHER_PROCESS;

typedef struct {
    const char *symbol;
    size_t field; /* in lc_outside_addresses */
} wanted_symbol;

static const wanted_symbol wanted[] = {
    {"_PyRuntime", offsetof(lc_outside_addresses, at.runtime)},
    {"PyCode_Type", offsetof(lc_outside_addresses, at.code_type)},
    {"PyUnicode_Type", offsetof(lc_outside_addresses, at.str_type)},
    {"PyBytes_Type", offsetof(lc_outside_addresses, at.bytes_type)},
    {"PyLong_Type", offsetof(lc_outside_addresses, at.int_type)},
    {"PyFunction_Type", offsetof(lc_outside_addresses, at.function_type)},
    {"PyMethod_Type", offsetof(lc_outside_addresses, at.method_type)},
    {"PyCFunction_Type", offsetof(lc_outside_addresses, at.cfunction_type)},
    {"PyCoro_Type", offsetof(lc_outside_addresses, at.coroutine_type)},
    {"PyGen_Type", offsetof(lc_outside_addresses, at.generator_type)},
    {"PyType_Type", offsetof(lc_outside_addresses, type_type)},
    {"PyMethodDescr_Type", offsetof(lc_outside_addresses, descriptor_type)},
    {"_PyWeakref_RefType", offsetof(lc_outside_addresses, reference_type)},
    {"PyTuple_Type", offsetof(lc_outside_addresses, at.tuple_type)},
    {"PyList_Type", offsetof(lc_outside_addresses, at.list_type)},
    {"PyDict_Type", offsetof(lc_outside_addresses, at.dict_type)},
};
enum { WANTED = sizeof wanted / sizeof wanted[0] };

static bool take_addresses(PyObject *dict, lc_outside_addresses *out)
{
    for (size_t i = 0; i < WANTED; i++) {
        PyObject *number = PyDict_GetItemString(dict, wanted[i].symbol);
        if (number == NULL) {
            PyErr_SetString(PyExc_KeyError, wanted[i].symbol);
            return false;
        }
        const unsigned long long address = PyLong_AsUnsignedLongLong(number);
        if (address == (unsigned long long)-1 && PyErr_Occurred()) {
            return false;
        }
        *(uint64_t *)(void *)((char *)out + wanted[i].field) = address;
    }
    return true;
}

static void close_other(PyObject *capsule)
{
    lc_other_process *other = PyCapsule_GetPointer(capsule, capsule_name);
    if (other != NULL) {
        lc_cpython_source_close(&other->source);
        lc_memory_reader_close(&other->reader);
        PyMem_Free(other);
    }
}

static PyObject *open_other(PyObject *Py_UNUSED(module), PyObject *args)
{
    int pid;
    unsigned long long version;
    PyObject *dict;
    const char *why_not = NULL;
    if (!PyArg_ParseTuple(args, "iKO!", &pid, &version, &PyDict_Type, &dict)) {
        return NULL;
    }
    lc_other_process *other = PyMem_Calloc(1, sizeof *other);
    if (other == NULL) {
        return PyErr_NoMemory();
    }
    if (!take_addresses(dict, &other->addresses)) {
        PyMem_Free(other);
        return NULL;
    }
    lc_memory_reader_open(&other->reader, pid);
    if (!lc_outside_open(&other->source, &other->reader, version, &other->addresses, &why_not)) {
        PyErr_SetString(PyExc_RuntimeError, why_not);
        lc_memory_reader_close(&other->reader);
        PyMem_Free(other);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(other, capsule_name, close_other);
    if (capsule == NULL) {
        lc_cpython_source_close(&other->source);
        lc_memory_reader_close(&other->reader);
        PyMem_Free(other);
    }
    return capsule;
}

static PyObject *list_threads(PyObject *Py_UNUSED(module), PyObject *handle)
{
    uint64_t interpreters[LC_OTHER_INTERPRETERS_MAX];
    lc_other_process *other = PyCapsule_GetPointer(handle, capsule_name);
    if (other == NULL) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    const uint32_t count = lc_outside_interpreters(&other->source, interpreters, LC_OTHER_INTERPRETERS_MAX);
    other->thread_count = 0;
    other->main_interpreter = count == 0 ? 0 : interpreters[count - 1];
    for (uint32_t i = 0; i < count && list != NULL; i++) {
        lc_thread_ref *threads = other->threads + other->thread_count;
        const uint32_t found = lc_threads_of(&other->source, interpreters[i], threads,
                                             LC_OTHER_THREADS_MAX - other->thread_count);
        other->thread_count += found;
        for (uint32_t j = 0; j < found && list != NULL; j++) {
            lc_append(&list, Py_BuildValue("KKK", (unsigned long long)interpreters[i],
                                           (unsigned long long)threads[j].thread_state,
                                           (unsigned long long)threads[j].tid));
        }
    }
    lc_outside_learn_locks(&other->source, &other->addresses, other->threads, other->thread_count);
    return list;
}

static lc_other_process *parse(PyObject *args, unsigned long long *thread, unsigned long long *number)
{
    PyObject *handle;
    if (number == NULL ? !PyArg_ParseTuple(args, "OK", &handle, thread)
                       : !PyArg_ParseTuple(args, "OKK", &handle, thread, number)) {
        return NULL;
    }
    return PyCapsule_GetPointer(handle, capsule_name);
}

static PyObject *frame_object(const lc_frame *frame)
{
    return Py_BuildValue("NNIIIIII", lc_text_object(frame->code->qualname),
                         lc_text_object(frame->code->filename), (unsigned)frame->line,
                         (unsigned)frame->end_line, (unsigned)frame->column, (unsigned)frame->end_column,
                         (unsigned)frame->code->first_line, (unsigned)frame->code->code_flags);
}

static PyObject *read_stack(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long thread;
    lc_other_process *other = parse(args, &thread, NULL);
    if (other == NULL) {
        return NULL;
    }
    lc_frame_source *source = &other->source.source;
    const lc_walk_result result = source->walk(source, thread, &other->stack);
    const uint32_t count = result == LC_WALK_OK ? other->stack.count : 0;
    PyObject *frames = PyList_New(0);
    for (uint32_t i = 0; i < count && frames != NULL; i++) {
        lc_append(&frames, frame_object(&other->stack.frames[i]));
    }
    return Py_BuildValue("iNNN", (int)result, PyBool_FromLong(other->stack.truncated),
                         PyBool_FromLong(other->stack.inner_cut), lc_tuple_of(frames));
}

static PyObject *read_gil(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long thread;
    lc_other_process *other = parse(args, &thread, NULL);
    lc_gil_view view;
    if (other == NULL) {
        return NULL;
    }
    other->source.source.gil(&other->source.source, thread, &view);
    return Py_BuildValue("iIKK", (int)view.state, (unsigned)view.holder_tid,
                         (unsigned long long)view.wait_address_low,
                         (unsigned long long)view.wait_address_high);
}

static PyObject *read_lock(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long thread, futex;
    lc_other_process *other = parse(args, &thread, &futex);
    lc_lock_view view;
    if (other == NULL) {
        return NULL;
    }
    const lc_lock_question question = {.thread_state = thread, .futex = futex, .search = true};
    other->source.source.lock(&other->source.source, &question, &view);
    return Py_BuildValue("iiIN", (int)view.kind, (int)view.proof, (unsigned)view.holder_tid,
                         lc_text_object(view.module));
}

static PyObject *read_name(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long thread, tid;
    lc_other_process *other = parse(args, &thread, &tid);
    return other == NULL
               ? NULL
               : lc_text_object(other->source.source.thread_name(&other->source.source, thread, tid));
}

static PyMethodDef methods[] = {
    {"outside_open", open_other, METH_VARARGS, "See other_process.c."},
    {"outside_threads", list_threads, METH_O, "See other_process.c."},
    {"outside_stack", read_stack, METH_VARARGS, "See other_process.c."},
    {"outside_name", read_name, METH_VARARGS, "See other_process.c."},
    {"outside_gil", read_gil, METH_VARARGS, "See other_process.c."},
    {"outside_lock", read_lock, METH_VARARGS, "See other_process.c."},
    {NULL, NULL, 0, NULL},
};

int lc_other_process_add(PyObject *module)
{
    PyObject *symbols = PyList_New(0);
    for (size_t i = 0; i < WANTED && symbols != NULL; i++) {
        lc_append(&symbols, PyUnicode_FromString(wanted[i].symbol));
    }
    PyObject *all = lc_tuple_of(symbols);
    const int added = all == NULL ? -1 : PyModule_AddObjectRef(module, "OUTSIDE_SYMBOLS", all);
    Py_XDECREF(all);
    return added != 0 || PyModule_AddFunctions(module, methods) != 0 ? -1 : lc_other_tasks_add(module);
}
