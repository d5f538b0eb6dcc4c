#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/names/member_offset.h"
#include "cpython/names/work_trio.h"

bool lc_cpython_source_learn_trio(lc_cpython_source *source, void *task_type)
{
    lc_trio_facts *facts = &source->trio;
    if (atomic_load_explicit(&facts->learned, memory_order_acquire)) {
        return true;
    }
    if (source->walker == NULL || !PyType_Check((PyObject *)task_type)) {
        return false;
    }
    facts->task_coroutine = lc_member_offset(task_type, "coro");
    facts->task_name = lc_member_offset(task_type, "name");
    if (facts->task_coroutine == 0 || facts->task_name == 0) {
        return false;
    }
    Py_INCREF((PyObject *)task_type); /* for ever: its address must not come to mean something else */
    facts->task_type = (uint64_t)(uintptr_t)task_type;
    atomic_store_explicit(&facts->learned, true, memory_order_release);
    return true;
}
