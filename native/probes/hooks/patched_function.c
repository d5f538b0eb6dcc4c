#include "probes/hooks/patched_function.h"

#include "core/clock/clock.h"
#include "probes/hooks/raised.h"

/* One interpreter: the module refuses subinterpreters. Kept for ever: what is made of them may outlive the module. */
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
    lc_patched *self = lc_stand_in_new(type, vectorcall, 2);
    if (self != NULL) {
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

static PyObject *followed_call(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    if (result != NULL) {
        PyObject *told = PyObject_Vectorcall(patch->extra, args, PyVectorcall_NARGS(count), names);
        if (!lc_raised_is_ours(told)) {
            Py_CLEAR(result);
        }
    }
    return result;
}

static PyObject *followed(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *after;
    return PyArg_ParseTuple(args, "OO", &original, &after) ? make(builtin_type, followed_call, original, after, 0) : NULL;
}

static PyMethodDef functions[] = {
    {"followed", followed, METH_VARARGS,
     "followed(function, after): the function; after(...) is called with the same when it has answered."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {LC_STAND_IN_VECTORCALL, {NULL, 0, 0, 0, NULL}};

#define COMMON_SLOTS                                                                                                   \
    {Py_tp_doc, "Takes the place of a library's function, and calls it."}, {Py_tp_call, PyVectorcall_Call},        \
        {Py_tp_getattro, get_attribute}, {Py_tp_repr, represent}, {Py_tp_members, members}, LC_STAND_IN_SLOTS

static PyType_Slot function_slots[] = {COMMON_SLOTS, {Py_tp_descr_get, descr_get}, {0, NULL}};
static PyType_Slot builtin_slots[] = {COMMON_SLOTS, {0, NULL}};

#define COMMON_FLAGS                                                                                                   \
    (LC_STAND_IN_FLAGS | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION)

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

int lc_patched_function_add(PyObject *module)
{
    Py_XSETREF(patched_type, (PyTypeObject *)Py_XNewRef(lc_stand_in_add(module, &function_spec)));
    Py_XSETREF(builtin_type, (PyTypeObject *)Py_XNewRef(patched_type ? lc_stand_in_add(module, &builtin_spec) : NULL));
    return builtin_type != NULL ? PyModule_AddFunctions(module, functions) : -1;
}
