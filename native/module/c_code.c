#include "module/c_code.h"

PyObject *lc_c_code(PyObject *Py_UNUSED(module), PyObject *function)
{
    const PyMethodDef *definition = NULL;
    if (Py_IS_TYPE(function, &PyMethodDescr_Type)) {
        definition = ((PyMethodDescrObject *)function)->d_method;
    } else if (PyCFunction_Check(function)) {
        definition = ((PyCFunctionObject *)function)->m_ml;
    }
    return PyLong_FromVoidPtr(definition == NULL ? NULL : (void *)(uintptr_t)definition->ml_meth);
}
