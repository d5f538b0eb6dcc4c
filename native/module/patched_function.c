#include "patched_function.h"

#include <stddef.h>
#include <structmember.h>

static PyTypeObject *patched_type; /* one interpreter: the module refuses subinterpreters */

static PyObject *vectorcall(PyObject *callable, PyObject *const *args, size_t count, PyObject *names)
{
    lc_patched *self = (lc_patched *)callable;
    Py_INCREF(self); /* the program may put something else in its place meanwhile */
    PyObject *result = self->call(self, args, count, names);
    Py_DECREF(self);
    return result;
}

PyTypeObject *lc_patched_function_type(void) { return patched_type; }

/* As a function binds: to an instance, not to a class. */
static PyObject *descr_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    (void)owner;
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
        return Py_NewRef(((lc_patched *)self)->original);
    }
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) {
        return Py_NewRef((PyObject *)Py_TYPE(self));
    }
    return PyObject_GetAttr(((lc_patched *)self)->original, name);
}

static PyObject *represent(PyObject *self)
{
    return PyUnicode_FromFormat("<loopcanary around %R>", ((lc_patched *)self)->original);
}

PyObject *lc_patched_function_new(lc_patched_call call, PyObject *original, PyObject *extra, long role)
{
    lc_patched *self = (lc_patched *)patched_type->tp_alloc(patched_type, 0);
    if (self != NULL) {
        self->vectorcall = vectorcall;
        self->call = call;
        self->original = Py_NewRef(original);
        self->extra = Py_XNewRef(extra);
        self->role = role;
    }
    return (PyObject *)self;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((lc_patched *)self)->original);
    Py_VISIT(((lc_patched *)self)->extra);
    return 0;
}

/* A patch that may still be called always has its original: only what it got besides goes early. */
static int clear(PyObject *self)
{
    Py_CLEAR(((lc_patched *)self)->extra);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_CLEAR(((lc_patched *)self)->original);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(lc_patched, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Stands in the place of a library's function, and calls it."},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, descr_get},
    {Py_tp_getattro, get_attribute},
    {Py_tp_repr, represent},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "loopcanary._native.PatchedFunction",
    .basicsize = sizeof(lc_patched),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
             Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int lc_patched_function_add(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    const int result = type ? PyModule_AddObjectRef(module, "PatchedFunction", type) : -1;
    Py_XSETREF(patched_type, (PyTypeObject *)type); /* kept: constructors need it */
    return result;
}
