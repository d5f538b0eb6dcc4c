#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "cpython/names/work_trio.h"

/* The offset of a slot that holds an object; 0 where the attribute is something else. */
static uint32_t slot_offset(PyTypeObject *type, const char *name)
{
    uint32_t offset = 0;
    PyObject *member = PyObject_GetAttrString((PyObject *)type, name);
    if (member != NULL && Py_IS_TYPE(member, &PyMemberDescr_Type)) {
        const PyMemberDef *slot = ((PyMemberDescrObject *)member)->d_member;
        offset = slot->type == T_OBJECT_EX && slot->offset > 0 ? (uint32_t)slot->offset : 0;
    }
    Py_XDECREF(member);
    PyErr_Clear();
    return offset;
}

bool lc_cpython_source_learn_trio(lc_cpython_source *source, void *task_type)
{
    lc_trio_facts *facts = &source->trio;
    if (atomic_load_explicit(&facts->learned, memory_order_acquire)) {
        return true;
    }
    if (source->walker == NULL || !PyType_Check((PyObject *)task_type)) {
        return false;
    }
    facts->task_coroutine = slot_offset(task_type, "coro");
    facts->task_name = slot_offset(task_type, "name");
    if (facts->task_coroutine == 0 || facts->task_name == 0) {
        return false;
    }
    Py_INCREF((PyObject *)task_type); /* for ever: its address must not come to mean something else */
    facts->task_type = (uint64_t)(uintptr_t)task_type;
    atomic_store_explicit(&facts->learned, true, memory_order_release);
    return true;
}
