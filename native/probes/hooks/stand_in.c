#include "probes/hooks/stand_in.h"

#include <stdbool.h>
#include <string.h>

static PyObject **references_of(PyObject *self) { return (PyObject **)((lc_stand_in *)self + 1); }

int lc_stand_in_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    for (Py_ssize_t i = 0; i < ((lc_stand_in *)self)->references; i++) {
        Py_VISIT(references_of(self)[i]);
    }
    return 0;
}

int lc_stand_in_clear(PyObject *self)
{
    for (Py_ssize_t i = 1; i < ((lc_stand_in *)self)->references; i++) {
        Py_CLEAR(references_of(self)[i]);
    }
    return 0;
}

void lc_stand_in_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    lc_stand_in_clear(self);
    if (((lc_stand_in *)self)->references > 0) {
        Py_CLEAR(*references_of(self));
    }
    type->tp_free(self);
    Py_DECREF(type);
}

void *lc_stand_in_new(PyTypeObject *type, vectorcallfunc vectorcall, Py_ssize_t references)
{
    lc_stand_in *self = (lc_stand_in *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = vectorcall;
        self->references = references;
    }
    return self;
}

PyTypeObject *lc_stand_in_add(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    const bool added = type != NULL && PyModule_AddObjectRef(module, strrchr(spec->name, '.') + 1, type) == 0;
    Py_XDECREF(type);
    return added ? (PyTypeObject *)type : NULL;
}
