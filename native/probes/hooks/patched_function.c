#include "probes/hooks/patched_function.h"

#include <stddef.h>
#include <structmember.h>

#include "core/clock/clock.h"
#include "probes/hooks/raised.h"

/* One interpreter: the module refuses subinterpreters. */
static PyTypeObject *patched_type;
static PyTypeObject *builtin_type;

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
static PyObject *descr_get(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(owner))
{
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

static PyObject *make(PyTypeObject *type, lc_patched_call call, PyObject *original, PyObject *extra, long role)
{
    lc_patched *self = (lc_patched *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = vectorcall;
        self->call = call;
        self->original = Py_NewRef(original);
        self->extra = Py_XNewRef(extra);
        self->role = role;
    }
    return (PyObject *)self;
}

PyObject *lc_patched_function_new(lc_patched_call call, PyObject *original, PyObject *extra, long role)
{
    return make(patched_type, call, original, extra, role);
}

PyObject *lc_patched_builtin_new(lc_patched_call call, PyObject *original, PyObject *extra, long role)
{
    return make(builtin_type, call, original, extra, role);
}

PyObject *lc_patched_tell_ran(lc_patched *patch, uint64_t begin_ns, PyObject *result)
{
    if (patch->extra != NULL) {
        const lc_raised before = lc_raised_take();
        PyObject *told = PyObject_CallFunction(patch->extra, "OKK", patch->original, (unsigned long long)begin_ns,
                                               (unsigned long long)lc_now_ns());
        if (!lc_raised_settle(before, told)) {
            Py_CLEAR(result);
        }
    }
    return result;
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

#define COMMON_SLOTS                                                                                                   \
    {Py_tp_doc, "Stands in the place of a library's function, and calls it."}, {Py_tp_call, PyVectorcall_Call},        \
        {Py_tp_getattro, get_attribute}, {Py_tp_repr, represent}, {Py_tp_traverse, traverse}, {Py_tp_clear, clear},    \
        {Py_tp_dealloc, dealloc}, {Py_tp_members, members}

static PyType_Slot function_slots[] = {COMMON_SLOTS, {Py_tp_descr_get, descr_get}, {0, NULL}};
static PyType_Slot builtin_slots[] = {COMMON_SLOTS, {0, NULL}};

#define COMMON_FLAGS                                                                                                   \
    (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE |                 \
     Py_TPFLAGS_DISALLOW_INSTANTIATION)

static PyType_Spec function_spec = {
    .name = "loopcanary._native.PatchedFunction",
    .basicsize = sizeof(lc_patched),
    .flags = COMMON_FLAGS | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = function_slots,
};

static PyType_Spec builtin_spec = {
    .name = "loopcanary._native.PatchedBuiltin",
    .basicsize = sizeof(lc_patched),
    .flags = COMMON_FLAGS,
    .slots = builtin_slots,
};

/* The type is kept: constructors need it. */
static int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyTypeObject **kept)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    const int result = type ? PyModule_AddObjectRef(module, name, type) : -1;
    Py_XSETREF(*kept, (PyTypeObject *)type);
    return result;
}

int lc_patched_function_add(PyObject *module)
{
    return add_type(module, &function_spec, "PatchedFunction", &patched_type) != 0
               ? -1
               : add_type(module, &builtin_spec, "PatchedBuiltin", &builtin_type);
}
