/* The last check before memory of a program is read by offsets: everything the walker will do is done
 * once here, with the GIL held, on things whose answer the public API knows. A build that differs from
 * its version's headers (a vendor's patch, other compile options) is found here and refused. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/gil/threads.h"
#include "cpython/objects/attributes.h"
#include "cpython/objects/objects.h"
#include "cpython/objects/raised.h"
#include "cpython/source/cpython_source.h"
#include "cpython/walker/frame_values.h"
#include "cpython/walker/walker.h"

#define FRAMES_COMPARED 8u

static uint64_t address_of(const void *object) { return (uint64_t)(uintptr_t)object; }

static bool same_text(lc_text text, PyObject *str)
{
    /* Undecodable names differ by design: the walker writes U+FFFD. */
    PyObject *utf8 = PyUnicode_AsEncodedString(str, "utf-8", "strict");
    if (utf8 == NULL) {
        PyErr_Clear();
        return true;
    }
    const size_t bytes = (size_t)PyBytes_GET_SIZE(utf8);
    const bool same = bytes > LC_STRING_MAX - 4 ||
                      (bytes == text.length && memcmp(PyBytes_AS_STRING(utf8), text.bytes, bytes) == 0);
    Py_DECREF(utf8);
    return same;
}

static bool strings_agree(lc_cpython_source *source)
{
    static const Py_UCS4 widest[] = {'a', 0xE9, 0x4E16, 0x1F424};
    bool agree = true;
    for (size_t i = 0; i < sizeof widest / sizeof widest[0] && agree; i++) {
        const Py_UCS4 characters[] = {'l', 'c', widest[i], '!'};
        PyObject *str = PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, characters, 4);
        if (str == NULL) {
            PyErr_Clear();
            return false;
        }
        lc_str_value value = {.bytes = source->walker->text[0]};
        agree = lc_read_str(source, address_of(str), source->walker->scratch, &value) &&
                same_text((lc_text){value.bytes, value.length}, str);
        Py_DECREF(str);
    }
    return agree;
}

static bool numbers_agree(lc_cpython_source *source)
{
    static const unsigned long long numbers[] = {1, 1000, 12345678901ULL};
    bool agree = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && agree; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);
        if (number == NULL) {
            PyErr_Clear();
            return false;
        }
        uint64_t value = 0;
        agree = lc_read_int(source, address_of(number), &value) && value == numbers[i];
        Py_DECREF(number);
    }
    return agree;
}

static bool threads_agree(lc_cpython_source *source, PyThreadState *self)
{
    uint64_t head = 0;
    PyInterpreterState *interp = PyThreadState_GetInterpreter(self);
    const uint64_t at = address_of(interp) + source->layout.interp_threads;
    lc_thread_words words;
    lc_gil_view gil;
    lc_gil(source, address_of(self), &gil);
    return lc_read(source->reader, at, &head, sizeof head) &&
           head == address_of(PyInterpreterState_ThreadHead(interp)) &&
           lc_thread_words_read(source, address_of(self), &words) &&
           words.next == address_of(PyThreadState_Next(self)) && gil.state == LC_GIL_HELD_BY_SELF &&
           gil.holder_tid == words.tid;
}

static bool frame_agrees(const lc_frame *frame, PyFrameObject *object)
{
    PyCodeObject *code = PyFrame_GetCode(object);
    const int line = PyFrame_GetLineNumber(object);
    const bool agree = same_text(frame->code->qualname, code->co_qualname) &&
                       same_text(frame->code->filename, code->co_filename) &&
                       frame->code->first_line == (uint32_t)code->co_firstlineno &&
                       frame->code->code_flags == (uint32_t)code->co_flags &&
                       frame->line == (line > 0 ? (uint32_t)line : 0);
    Py_DECREF(code);
    return agree;
}

static bool frames_agree(lc_cpython_source *source, PyThreadState *self)
{
    static lc_stack stack; /* under the GIL; 8 KiB are much for a stack of a small thread */
    const lc_walk_result result = lc_walk(source, address_of(self), &stack);
    PyFrameObject *object = PyThreadState_GetFrame(self);
    if (object == NULL) {
        return result == LC_WALK_EMPTY;
    }
    bool agree = result == LC_WALK_OK;
    uint32_t i = 0;
    while (agree && object != NULL && i < FRAMES_COMPARED) {
        agree = i < stack.count && frame_agrees(&stack.frames[i], object);
        PyFrameObject *back = PyFrame_GetBack(object);
        Py_DECREF(object);
        object = back;
        i++;
    }
    agree = agree && (object != NULL || i == stack.count);
    Py_XDECREF(object);
    return agree;
}

/* ---- values of frames ------------------------------------------------------------------------------
 *
 * What only names and locks are read by: functions, methods, generators, attributes, and the values of a
 * frame. No public structure says where these are, so a few are made, and a function looks at its own
 * frame. */

static const char PROBE[] = "def each():\n"
                            "    yield\n"
                            "def run(look, known, generator):\n"
                            "    for one in generator:\n"
                            "        try:\n"
                            "            look()\n"
                            "        except KeyError:\n"
                            "            pass\n"
                            "class Attributes:\n"
                            "    def __init__(self, known):\n"
                            "        self.one, self.other = known, 'known'\n"
                            "generator = each()\n"
                            "instance = Attributes(run)\n";

enum { LOCALS = 4, KNOWN = 1 }; /* of `run`: look, known, generator, one */

typedef struct {
    lc_cpython_source *source;
    PyObject *known; /* any object */
    PyObject *generator;
    uint32_t stack_size; /* of `run` */
    bool looked;
    bool agrees;
} probe;

/* ---- the frame of `run`, which is the innermost one while it calls `look` --------------------------- */

/* What it iterates over lies on its value stack, below what the handler lets go of. */
static bool keeps_generator(const probe *p, const lc_raw_frame *frame, const lc_frame_shape *shape)
{
    uint64_t slots[LC_FRAME_SLOTS_MAX];
    const uint32_t kept = lc_frame_stack_kept(p->source, frame, shape);
    if (!lc_frame_slots_read(p->source, frame, shape->locals, kept, slots)) {
        return false;
    }
    for (uint32_t i = 0; i < kept; i++) {
        if (slots[i] == address_of(p->generator)) {
            return true;
        }
    }
    return false;
}

static bool values_of_frame_agree(const probe *p)
{
    lc_frame_shape shape;
    uint64_t slots[LOCALS];
    const lc_chain *chain = lc_chain_of_thread(p->source, address_of(PyThreadState_Get()), 1);
    if (chain == NULL || chain->count == 0 || !lc_frame_shape_read(p->source, &chain->frames[0], &shape)) {
        return false;
    }
    return lc_str_is(p->source, shape.qualname, "run") && shape.locals == LOCALS &&
           shape.stack == p->stack_size &&
           lc_frame_slots_read(p->source, &chain->frames[0], 0, LOCALS, slots) &&
           slots[KNOWN] == address_of(p->known) && keeps_generator(p, &chain->frames[0], &shape);
}

static PyObject *look(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    probe *p = PyCapsule_GetPointer(self, NULL);
    p->looked = true;
    p->agrees = values_of_frame_agree(p);
    Py_RETURN_NONE;
}

static PyMethodDef look_definition = {"look", look, METH_NOARGS, NULL};

/* Of a generator that has not begun. */
static bool generator_agrees(const lc_cpython_source *source, PyObject *generator)
{
    lc_raw_frame frame;
    lc_frame_shape shape;
    return lc_type_at(source, address_of(generator)) == source->at.generator_type &&
           lc_str_is(source, lc_word_at(source, address_of(generator) + source->layout.generator_qualname),
                     "each") &&
           lc_frame_read(source, address_of(generator) + source->layout.generator_frame, &frame) &&
           lc_frame_shape_read(source, &frame, &shape) && lc_str_is(source, shape.qualname, "each");
}

static bool objects_agree(const lc_cpython_source *source, PyObject *bound, PyObject *generator,
                          PyObject *builtin, PyObject *self)
{
    const lc_layout *l = &source->layout;
    const uint64_t function = address_of(PyMethod_GET_FUNCTION(bound));
    return lc_type_at(source, address_of(bound)) == source->at.method_type &&
           lc_word_at(source, address_of(bound) + l->method_function) == function &&
           lc_word_at(source, address_of(bound) + l->method_self) == address_of(PyMethod_GET_SELF(bound)) &&
           lc_type_at(source, function) == source->at.function_type &&
           lc_str_is(source, lc_word_at(source, function + l->function_qualname), "run") &&
           generator_agrees(source, generator) &&
           lc_type_at(source, address_of(builtin)) == source->at.cfunction_type &&
           lc_word_at(source, address_of(builtin) + l->cfunction_def) == address_of(&look_definition) &&
           lc_word_at(source, address_of(builtin) + l->cfunction_self) == address_of(self);
}

static bool attributes_agree(lc_cpython_source *source, PyObject *instance, PyObject *one)
{
    const uint64_t address = address_of(instance);
    return lc_attribute(source, address, "one") == address_of(one) &&
           lc_str_is(source, lc_attribute(source, address, "other"), "known") &&
           lc_attribute(source, address, "another") == 0;
}

static uint32_t stack_size_of(PyObject *function)
{
    PyObject *size = PyObject_GetAttrString(PyFunction_GET_CODE(function), "co_stacksize");
    const long number = size == NULL ? 0 : PyLong_AsLong(size);
    Py_XDECREF(size);
    return (uint32_t)number;
}

static bool agree(lc_cpython_source *source, PyObject *names)
{
    PyObject *generator = PyDict_GetItemString(names, "generator");
    PyObject *run = PyDict_GetItemString(names, "run");
    probe p = {.source = source, .known = names, .generator = generator, .stack_size = stack_size_of(run)};
    PyObject *self = PyCapsule_New(&p, NULL, NULL);
    PyObject *builtin = self == NULL ? NULL : PyCFunction_New(&look_definition, self);
    PyObject *bound = PyMethod_New(run, names);
    bool agrees = attributes_agree(source, PyDict_GetItemString(names, "instance"), run);
    if (builtin != NULL && bound != NULL) {
        agrees = agrees && objects_agree(source, bound, generator, builtin, self);
        Py_XDECREF(PyObject_CallFunctionObjArgs(run, builtin, p.known, generator, NULL));
        agrees = agrees && (!p.looked || p.agrees);
    }
    Py_XDECREF(bound);
    Py_XDECREF(builtin);
    Py_XDECREF(self);
    return agrees;
}

static bool values_agree(lc_cpython_source *source)
{
    PyObject *names = PyDict_New();
    PyObject *ran = NULL;
    if (names != NULL && PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0) {
        ran = PyRun_String(PROBE, Py_file_input, names, names);
    }
    /* A program may forbid to compile (an audit hook): then nothing contradicts. */
    const bool agrees = ran == NULL || agree(source, names);
    if (names != NULL) {
        PyDict_Clear(names); /* its functions refer to it */
    }
    Py_XDECREF(ran);
    Py_XDECREF(names);
    lc_raised_pass_on();
    return agrees;
}

bool lc_self_test(lc_cpython_source *source, const char **why_not)
{
    PyThreadState *self = PyThreadState_Get();
    *why_not = NULL;
    if (!strings_agree(source) || !numbers_agree(source)) {
        *why_not = "str or int objects of this CPython build are not laid out as its version's are";
    } else if (!threads_agree(source, self)) {
        *why_not = "thread states or the GIL of this CPython build are not laid out as its version's are";
    } else if (!frames_agree(source, self)) {
        *why_not = "frames of this CPython build are not laid out as its version's are";
    } else if (!values_agree(source)) {
        *why_not =
            "functions or the values of frames of this CPython build are not laid out as its version's are";
    }
    return *why_not == NULL;
}
