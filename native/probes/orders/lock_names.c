/* What locks and threads are called where a thread is. None of the program's code is called, and no object is made that the
 * garbage collector looks at. */
#include "probes/orders/held.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/orders/own_frames.h"

enum { NAMED_FRAMES_MAX = 12, LOCALS_MAX = 64, LOOKS_MAX = 200 };

/* What the classes of an object have under this name. Borrowed. */
static PyObject *of_class(PyObject *object, PyObject *name)
{
    PyObject *classes = Py_TYPE(object)->tp_mro;
    for (Py_ssize_t i = 0; classes != NULL && i < PyTuple_GET_SIZE(classes); i++) {
        PyObject *names = ((PyTypeObject *)PyTuple_GET_ITEM(classes, i))->tp_dict;
        PyObject *found = names != NULL ? PyDict_GetItemWithError(names, name) : NULL;
        if (found != NULL) {
            return found;
        }
    }
    PyErr_Clear();
    return NULL;
}

#if PY_VERSION_HEX < 0x030D0000
#define PyObject_GetOptionalAttr _PyObject_LookupAttr
#endif

/* An attribute that the object itself has, without any code of its class's: a new reference; NULL without an exception. */
static PyObject *own_attribute(PyObject *object, PyObject *name)
{
    const bool is_plain = Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE && PyUnicode_CheckExact(name) &&
                          Py_TYPE(object)->tp_getattro == PyObject_GenericGetAttr;
    PyObject *of_its_class = is_plain ? of_class(object, name) : NULL;
    PyObject *value = NULL;
    if (!is_plain || (of_its_class != NULL && !Py_IS_TYPE(of_its_class, &PyMemberDescr_Type))) {
        return NULL;
    }
    if (PyObject_GetOptionalAttr(object, name, &value) < 0) {
        PyErr_Clear();
    }
    return value;
}

/* What a module or a class has under a name, or the object itself: a new reference; NULL without an exception. */
static PyObject *attribute_of(PyObject *object, PyObject *name)
{
    PyObject *names = PyModule_CheckExact(object) ? PyModule_GetDict(object)
                      : PyType_Check(object)      ? ((PyTypeObject *)object)->tp_dict
                                                  : NULL;
    PyObject *found = names != NULL ? Py_XNewRef(PyDict_GetItemWithError(names, name)) : own_attribute(object, name);
    if (names == NULL && found == NULL && PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) {
        found = Py_XNewRef(of_class(object, name));
    }
    PyErr_Clear();
    return found;
}

/* Borrowed; NULL: it has no value, or one that is no object (a tagged integer, from 3.14 on). */
static PyObject *local_of(const lc_own_frame *frame, Py_ssize_t index)
{
    const lc_layout *l = lc_own_layout();
    const uintptr_t word = (uintptr_t)lc_pointer_at(frame->frame + l->frame_bytes + 8 * index);
    const bool is_integer = l->frame_tags == 3 && (word & 3u) == 3u;
    return is_integer ? NULL : (PyObject *)(word & ~(uintptr_t)l->frame_tags);
}

/* Whether the class, or one that it is made of, is of `threading` or `queue`. */
static bool is_of_library(const PyTypeObject *type)
{
    static PyObject *word; /* a string, never given back */
    word = word != NULL ? word : PyUnicode_InternFromString("__module__");
    for (Py_ssize_t i = 0; word != NULL && type->tp_mro != NULL && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        PyObject *names = ((PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i))->tp_dict;
        PyObject *module = names != NULL ? PyDict_GetItemWithError(names, word) : NULL;
        if (module != NULL && PyUnicode_Check(module) &&
            (PyUnicode_CompareWithASCIIString(module, "threading") == 0 ||
             PyUnicode_CompareWithASCIIString(module, "queue") == 0)) {
            return true;
        }
    }
    PyErr_Clear();
    return false;
}

/* Whether the value is what is wanted: itself, or an object of `threading` or `queue` whose lock that is. */
static bool is_wanted(PyObject *value, PyObject *wanted)
{
    static PyObject *words[2]; /* strings, never given back: in a Condition, and in a Queue */
    words[0] = words[0] != NULL ? words[0] : PyUnicode_InternFromString("_lock");
    words[1] = words[1] != NULL ? words[1] : PyUnicode_InternFromString("mutex");
    for (unsigned i = 0; value != wanted && i < 2; i++) {
        PyObject *inside = value != NULL && words[i] != NULL ? own_attribute(value, words[i]) : NULL;
        Py_XDECREF(inside); /* the object has it */
        if (inside == wanted) {
            return is_of_library(Py_TYPE(value));
        }
    }
    return value == wanted;
}

static const char *text_of(PyObject *name)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    PyErr_Clear();
    return text != NULL ? text : "?";
}

typedef struct {
    PyObject *wanted; /* borrowed */
    PyObject *names;  /* that the code uses which acquired it */
    PyObject *in;     /* the object whose attribute it is; NULL: it is a variable */
    const char *kind; /* of what has the name */
    char name[LC_ORDER_NAME_BYTES - 20]; /* empty: none so far; leaves room for its kind */
    bool takes_variable; /* no variable's name was found yet, which says less than an attribute's */
    const char *globals; /* of the frame before: looked at already */
    unsigned left;       /* objects that may still be looked at */
} naming;

static const char *short_name(const PyTypeObject *type)
{
    const char *dot = strrchr(type->tp_name, '.');
    return dot != NULL ? dot + 1 : type->tp_name;
}

/* What the object is called whose attribute this is. */
static const char *owner_name(PyObject *object)
{
    if (PyType_Check(object)) {
        return short_name((PyTypeObject *)object);
    }
    const char *module = PyModule_CheckExact(object) ? PyModule_GetName(object) : NULL;
    PyErr_Clear();
    return module != NULL ? module : short_name(Py_TYPE(object));
}

/* False: enough was looked at. */
static bool looks_on(naming *naming)
{
    const bool on = naming->left != 0;
    naming->left -= on;
    return on;
}

static bool has_attributes(PyObject *object)
{
    return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) || PyModule_CheckExact(object) || PyType_Check(object);
}

static bool is_one_of(naming *naming, PyObject *object, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names) && looks_on(naming); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = attribute_of(object, name);
        const bool found = value != NULL && is_wanted(value, naming->wanted);
        if (found) {
            snprintf(naming->name, sizeof naming->name, "%s.%s", owner_name(object), text_of(name));
            naming->in = object;
            naming->kind = short_name(Py_TYPE(value));
        }
        Py_XDECREF(value);
        if (found) {
            return true;
        }
    }
    return false;
}

/* Whether an attribute of these names, or of those at its acquire, is what is wanted. */
static bool is_attribute_of(naming *naming, PyObject *object, PyObject *names)
{
    return has_attributes(object) && (is_one_of(naming, object, names) ||
                                      (names != naming->names && is_one_of(naming, object, naming->names)));
}

static bool is_variable(naming *naming, PyObject *name, PyObject *value)
{
    if (value == NULL || !is_wanted(value, naming->wanted)) {
        return false;
    }
    snprintf(naming->name, sizeof naming->name, "%s", text_of(name));
    naming->in = NULL;
    naming->kind = short_name(Py_TYPE(value));
    return true;
}

static bool is_in_globals(naming *naming, PyObject *globals, PyObject *names)
{
    PyObject *name, *value;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names) && looks_on(naming); i++) {
        name = PyTuple_GET_ITEM(names, i);
        value = PyDict_GetItemWithError(globals, name);
        if (value != NULL && (is_variable(naming, name, value) || is_attribute_of(naming, value, names))) {
            return true;
        }
    }
    PyErr_Clear();
    for (Py_ssize_t at = 0; looks_on(naming) && PyDict_Next(globals, &at, &name, &value);) {
        if (value == naming->wanted && is_variable(naming, name, value)) {
            return true;
        }
    }
    return false;
}

/* `variables`: whether names of variables say anything. Of a local one it goes on: an attribute's says more. */
static bool is_in_frame(naming *naming, const lc_own_frame *frame, bool variables)
{
    PyObject *locals = frame->code->co_localsplusnames, *values[LOCALS_MAX];
    const Py_ssize_t count = PyTuple_GET_SIZE(locals) < LOCALS_MAX ? PyTuple_GET_SIZE(locals) : LOCALS_MAX;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = local_of(frame, i);
        values[i] = value != NULL && PyCell_Check(value) ? PyCell_GET(value) : value;
    }
    for (Py_ssize_t i = 0; i < count && naming->left != 0; i++) {
        if (values[i] != NULL && is_attribute_of(naming, values[i], frame->code->co_names)) {
            return true;
        }
    }
    const char *globals = lc_pointer_at(frame->frame + lc_own_layout()->frame_globals);
    const bool is_other = variables && globals != NULL && globals != naming->globals;
    naming->globals = globals;
    if (is_other && PyDict_CheckExact((PyObject *)globals) &&
        is_in_globals(naming, (PyObject *)globals, frame->code->co_names)) {
        return true;
    }
    for (Py_ssize_t i = 0; i < count && variables && naming->takes_variable; i++) {
        naming->takes_variable = !is_variable(naming, PyTuple_GET_ITEM(locals, i), values[i]);
    }
    return false;
}

/* `Lock 'Bank.accounts'`: by the first name that one of the thread's frames has for it. */
void lc_name_lock(const lc_held_lock *held, char *into)
{
    naming naming = {.wanted = held->lock,
                     .names = held->code->co_names,
                     .kind = short_name(Py_TYPE(held->lock)),
                     .takes_variable = true,
                     .left = LOOKS_MAX};
    lc_own_frame frame;
    bool more = lc_own_frame_from(lc_own_frames(), &frame);
    for (unsigned i = 0; more && i < NAMED_FRAMES_MAX; i++, more = lc_own_frame_next(&frame)) {
        const bool plumbing = lc_is_plumbing(frame.code);
        if (is_in_frame(&naming, &frame, !plumbing)) {
            if (!plumbing || naming.in == NULL) {
                break;
            }
            naming.wanted = naming.in; /* what it is called outside of these files says more */
            naming.takes_variable = true;
        }
    }
    const char *kind = strcmp(naming.kind, "lock") == 0 ? "Lock" : naming.kind;
    snprintf(into, LC_ORDER_NAME_BYTES, naming.name[0] != '\0' ? "%.16s '%s'" : "%.100s", kind, naming.name);
}

void lc_name_thread(char *into)
{
    PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    PyObject *thread = ident != NULL ? PyDict_GetItemWithError(lc_orders_now.active, ident) : NULL;
    PyObject *word = PyUnicode_InternFromString("_name");
    PyObject *name = thread != NULL && word != NULL ? own_attribute(thread, word) : NULL;
    if (name != NULL) {
        snprintf(into, LC_ORDER_NAME_BYTES, "%s", text_of(name));
    } else {
        snprintf(into, LC_ORDER_NAME_BYTES, "thread %ld", syscall(SYS_gettid));
    }
    Py_XDECREF(name);
    Py_XDECREF(word);
    Py_XDECREF(ident);
    PyErr_Clear();
}
