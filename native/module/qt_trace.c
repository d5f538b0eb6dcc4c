#include "qt_trace.h"

#include <string.h>

#include "thread_lane.h"
#include "work_qt.h"

#if PY_VERSION_HEX < 0x030D0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

static PyObject *listener; /* under the GIL; whether there is one is looked at without */

enum {
    MOUSE_PRESS = 2,
    MOUSE_RELEASE = 3,
    MOUSE_DOUBLE_CLICK = 4,
    MOUSE_MOVE = 5,
    KEY_PRESS = 6,
    KEY_RELEASE = 7,
    PAINT = 12,
    WHEEL = 31,
    UPDATE_REQUEST = 77,
    TABLET_MOVE = 87,
    TABLET_PRESS = 92,
    TABLET_RELEASE = 93,
    TOUCH_BEGIN = 194,
    TOUCH_UPDATE = 195,
    TOUCH_END = 196,
    EXPOSE = 206,
};

/* QInputEvent's time stamp, behind QEvent and a word more: the same in Qt 5 and 6. The listener sees whether it holds. */
#define STAMP_OFFSET 24u

static bool is_input(uint16_t type)
{
    switch (type) {
    case MOUSE_PRESS:
    case MOUSE_RELEASE:
    case MOUSE_DOUBLE_CLICK:
    case MOUSE_MOVE:
    case KEY_PRESS:
    case KEY_RELEASE:
    case WHEEL:
    case TABLET_MOVE:
    case TABLET_PRESS:
    case TABLET_RELEASE:
    case TOUCH_BEGIN:
    case TOUCH_UPDATE:
    case TOUCH_END:
        return true;
    default:
        return false;
    }
}

static bool is_drawing(uint16_t type) { return type == UPDATE_REQUEST || type == EXPOSE; }

lc_qt_delivery lc_qt_delivery_begin(const void *receiver, const void *event, uint16_t type)
{
    lc_qt_delivery delivery = {.work = lc_qt_work((uint64_t)(uintptr_t)receiver, type), .type = type};
    if (__builtin_expect(__atomic_load_n(&listener, __ATOMIC_RELAXED) != NULL, 0)) {
        const bool input = is_input(type);
        if (input) {
            memcpy(&delivery.stamp, (const char *)event + STAMP_OFFSET, sizeof delivery.stamp);
        }
        delivery.begin_ns = input || is_drawing(type) ? lc_now_ns() : 0u;
    }
    return delivery;
}

bool lc_qt_delivery_passes_on(lc_qt_delivery *delivery, const void *receiver, uint16_t type)
{
    const bool paints = type == PAINT && is_drawing(delivery->type);
    delivery->painted += paints;
    if (!paints && (type != delivery->type || !is_input(type))) {
        return false;
    }
    delivery->work = lc_qt_work((uint64_t)(uintptr_t)receiver, type);
    return true;
}

bool lc_qt_may_call_python(void)
{
    return Py_IsInitialized() && !Py_IsFinalizing() && PyGILState_GetThisThreadState() != NULL;
}

void lc_qt_pass_on_exception(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_Clear();
        PyErr_SetInterrupt();
    } else {
        PyErr_WriteUnraisable(NULL);
    }
}

static void tell(const lc_qt_delivery *delivery, uint64_t end_ns)
{
    PyObject *function = Py_NewRef(listener);
    const unsigned long long receiver = delivery->work & LC_WORK_QT_RECEIVER_MASK;
    PyObject *result = PyObject_CallFunction(function, "HKKKKI", delivery->type, receiver,
                                             (unsigned long long)delivery->begin_ns, (unsigned long long)end_ns,
                                             (unsigned long long)delivery->stamp, delivery->painted);
    Py_DECREF(function);
    if (result == NULL) {
        lc_qt_pass_on_exception();
    }
    Py_XDECREF(result);
}

void lc_qt_delivery_end(const lc_qt_delivery *delivery)
{
    if (__builtin_expect(delivery->begin_ns == 0, 1) || !lc_qt_may_call_python()) {
        return;
    }
    const uint64_t end_ns = lc_now_ns();
    const PyGILState_STATE state = PyGILState_Ensure();
    if (listener != NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        tell(delivery, end_ns);
        PyErr_Restore(type, value, traceback);
    }
    PyGILState_Release(state);
}

PyObject *lc_qt_listen(PyObject *module, PyObject *function)
{
    (void)module;
    PyObject *before = listener;
    __atomic_store_n(&listener, function == Py_None ? NULL : Py_NewRef(function), __ATOMIC_RELAXED);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}
