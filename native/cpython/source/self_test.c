/* The last check before memory of a program is read by offsets: everything the walker will do is done
 * once here, with the GIL held, on things whose answer the public API knows. A build that differs from
 * its version's headers (a vendor's patch, other compile options) is found here and refused. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpython/objects/objects.h"
#include "cpython/source/self_test.h"
#include "cpython/gil/threads.h"
#include "cpython/walker/walker.h"

#define FRAMES_COMPARED 8u

static uint64_t address_of(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

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
           words.next == address_of(PyThreadState_Next(self)) &&
           gil.state == LC_GIL_HELD_BY_SELF && gil.holder_tid == words.tid;
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
    } else if (!lc_values_agree(source)) {
        *why_not = "functions or the values of frames of this CPython build are not laid out as its version's are";
    }
    return *why_not == NULL;
}
