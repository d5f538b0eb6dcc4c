#include "probes/hooks/patched_function.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock/clock.h"
#include "cpython/objects/raised.h"

/* One interpreter: the module refuses subinterpreters. Kept for ever: what is made of them may outlive the
 * module. */
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

static PyObject *make(PyTypeObject *type, lc_patched_call call, PyObject *original, PyObject *extra,
                      long role)
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
        PyObject *told = PyObject_CallFunction(patch->extra, "OKK", patch->original,
                                               (unsigned long long)begin_ns, (unsigned long long)lc_now_ns());
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
    return PyArg_ParseTuple(args, "OO", &original, &after)
               ? make(builtin_type, followed_call, original, after, 0)
               : NULL;
}

/* What another thread calls is its own affair. `extra`: what rested() was given. */
static PyObject *rested_call(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    if (syscall(SYS_gettid) != getpid()) {
        return lc_patched_call_original(patch, args, count, names);
    }
    if (!lc_raised_is_ours(PyObject_CallNoArgs(PyTuple_GET_ITEM(patch->extra, 1)))) {
        return NULL;
    }
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    const lc_raised raised = lc_raised_take();
    if (!lc_raised_settle(raised, PyObject_CallNoArgs(PyTuple_GET_ITEM(patch->extra, 2)))) {
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *rested(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *rest, *go_on;
    const bool fits = PyArg_ParseTuple(args, "OOO", &original, &rest, &go_on);
    return fits ? make(builtin_type, rested_call, original, args, 0) : NULL;
}

static PyObject *enclosed_call(lc_patched *patch, PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *parts = patch->extra; /* NULL once the garbage collector has cleared it */
    if (parts == NULL) {
        return lc_patched_call_original(patch, args, count, names);
    }
    PyObject *begun = PyObject_CallNoArgs(PyTuple_GET_ITEM(parts, 1));
    if (begun == NULL) {
        return lc_raised_is_ours(NULL) ? lc_patched_call_original(patch, args, count, names) : NULL;
    }
    Py_INCREF(parts);
    PyObject *result = lc_patched_call_original(patch, args, count, names);
    const lc_raised raised = lc_raised_take();
    if (!lc_raised_settle(raised, PyObject_CallOneArg(PyTuple_GET_ITEM(parts, 2), begun))) {
        Py_CLEAR(result);
    }
    Py_DECREF(parts);
    Py_DECREF(begun);
    return result;
}

static PyObject *enclosed(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *original, *begin, *end;
    int is_bound;
    if (!PyArg_ParseTuple(args, "OOOp", &original, &begin, &end, &is_bound)) {
        return NULL;
    }
    return make(is_bound ? patched_type : builtin_type, enclosed_call, original, args, 0);
}

static PyMethodDef functions[] = {
    {"enclosed", enclosed, METH_VARARGS,
     "enclosed(function, begin, end, is_bound): the function, with end(begin()) around each call, also of "
     "one that raises; bound as functions are, or never."},
    {"rested", rested, METH_VARARGS,
     "rested(function, rest, go_on): the function, with rest() and go_on() around each call of the main "
     "thread."},
    {"followed", followed, METH_VARARGS,
     "followed(function, after): the function; after(...) is called with the same when it has answered."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {LC_STAND_IN_VECTORCALL, {NULL, 0, 0, 0, NULL}};

#define COMMON_SLOTS                                                                                         \
    {Py_tp_doc, "Takes the place of a library's function, and calls it."}, {Py_tp_call, PyVectorcall_Call},  \
        {Py_tp_getattro, get_attribute}, {Py_tp_repr, represent},                                            \
    {                                                                                                        \
        Py_tp_members, members                                                                               \
    }
#define COMMON_FLAGS (Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION)

LC_STAND_IN_SPEC(function_spec, "PatchedFunction", lc_patched, COMMON_FLAGS | Py_TPFLAGS_METHOD_DESCRIPTOR,
                 COMMON_SLOTS, {Py_tp_descr_get, descr_get});
LC_STAND_IN_SPEC(builtin_spec, "PatchedBuiltin", lc_patched, COMMON_FLAGS, COMMON_SLOTS);

int lc_patched_function_add(PyObject *module)
{
    Py_XSETREF(patched_type, (PyTypeObject *)Py_XNewRef(lc_stand_in_add(module, &function_spec)));
    Py_XSETREF(builtin_type,
               (PyTypeObject *)Py_XNewRef(patched_type ? lc_stand_in_add(module, &builtin_spec) : NULL));
    return builtin_type != NULL ? PyModule_AddFunctions(module, functions) : -1;
}
