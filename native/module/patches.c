#include "core/patches/patches.h"
#include "module/agent.h"

static PyObject *note_patch(PyObject *Py_UNUSED(module), PyObject *line)
{
    const char *text = PyUnicode_AsUTF8(line);
    PyErr_Clear(); /* a name that is not text: what it is of is replaced by now */
    return PyBool_FromLong(text != NULL && lc_patch_note("%s", text) != 0);
}

static PyObject *patches(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyBytes_FromString(lc_patches());
}

static PyObject *c_code(PyObject *Py_UNUSED(module), PyObject *function)
{
    const PyMethodDef *definition = NULL;
    if (Py_IS_TYPE(function, &PyMethodDescr_Type)) {
        definition = ((PyMethodDescrObject *)function)->d_method;
    } else if (PyCFunction_Check(function)) {
        definition = ((PyCFunctionObject *)function)->m_ml;
    }
    return PyLong_FromVoidPtr(definition == NULL ? NULL : (void *)(uintptr_t)definition->ml_meth);
}

static PyMethodDef functions[] = {
    {"note_patch", note_patch, METH_O, "note_patch(line) -> bool: see core/patches/patches.h."},
    {"patches", patches, METH_NOARGS, "patches() -> bytes: all lines."},
    {"c_code", c_code, METH_O,
     "c_code(function) -> int: where the code of a built-in function, or of a method of a C type, begins; 0: "
     "not written in C. It lies in the object that hook_waits is to be told, also where that is the "
     "interpreter."},
    {NULL, NULL, 0, NULL},
};

int lc_patches_add(PyObject *module) { return PyModule_AddFunctions(module, functions); }
