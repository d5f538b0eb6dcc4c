/* Where a type written in C, or one with __slots__, keeps an attribute: its member descriptor says so. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <structmember.h>

/* The offset in the type's objects; 0: the attribute is no member that holds an object. GIL held. No
 * exception is left set. */
static inline uint32_t lc_member_offset(PyObject *type, const char *name)
{
    uint32_t offset = 0;
    PyObject *member = PyObject_GetAttrString(type, name);
    if (member != NULL && Py_IS_TYPE(member, &PyMemberDescr_Type)) {
        const PyMemberDef *found = ((PyMemberDescrObject *)member)->d_member;
        const bool is_object = found->type == T_OBJECT_EX || found->type == T_OBJECT;
        offset = is_object && found->offset > 0 ? (uint32_t)found->offset : 0;
    }
    Py_XDECREF(member);
    PyErr_Clear();
    return offset;
}
