#define PY_SSIZE_T_CLEAN
#include "probes/qt/qt.h"

#include <string.h>

#include "cpython/objects/raised.h"
#include "cpython/names/work_words.h"

/* until qt_listen(None); under the GIL, but whether there is one is looked at without */
static PyObject *listener;

enum {
    TIMER = 1,
    MOUSE_PRESS = 2,
    KEY_RELEASE = 7, /* between the two: of buttons and keys, and moves */
    FOCUS_IN = 8,
    FOCUS_OUT = 9,
    PAINT = 12,
    WINDOW_ACTIVATE = 24,
    WINDOW_DEACTIVATE = 25,
    WHEEL = 31,
    WINDOW_TITLE_CHANGE = 33,
    UPDATE_REQUEST = 77,
    TABLET_MOVE = 87,
    TABLET_PRESS = 92,
    TABLET_RELEASE = 93,
    TOUCH_BEGIN = 194,
    TOUCH_END = 196,
    EXPOSE = 206,
};

/* QInputEvent's time stamp, behind QEvent and a word more: the same in Qt 5 and 6. The listener sees
 * whether it holds. */
#define STAMP_OFFSET 24u

static bool is_input(uint16_t type)
{
    return (type >= MOUSE_PRESS && type <= KEY_RELEASE) || type == WHEEL || type == TABLET_MOVE ||
           type == TABLET_PRESS || type == TABLET_RELEASE || (type >= TOUCH_BEGIN && type <= TOUCH_END);
}

/* A window of widgets is activated or no more, one of Quick gets the focus or loses it. */
static bool is_titling(uint16_t type)
{
    return type == FOCUS_IN || type == FOCUS_OUT || type == WINDOW_ACTIVATE || type == WINDOW_DEACTIVATE ||
           type == WINDOW_TITLE_CHANGE;
}

static bool is_drawing(uint16_t type) { return type == UPDATE_REQUEST || type == EXPOSE; }

const char *lc_qt_class_of(const void *object)
{
    const uint64_t *const *table = object;
    const uint64_t *type_info = (const uint64_t *)(uintptr_t)(*table)[-1];
    return type_info != NULL ? (const char *)(uintptr_t)type_info[1] : NULL;
}

lc_qt_delivery lc_qt_delivery_begin(const void *receiver, const void *event, uint16_t type)
{
    const uint64_t address = (uint64_t)(uintptr_t)receiver;
    lc_qt_delivery delivery = {.work = lc_qt_work(address, type), .receiver = address, .type = type};
    if (__builtin_expect(__atomic_load_n(&listener, __ATOMIC_RELAXED) != NULL, 0)) {
        const bool input = is_input(type);
        if (input) {
            memcpy(&delivery.stamp, (const char *)event + STAMP_OFFSET, sizeof delivery.stamp);
        }
        if (input || is_drawing(type) || type == TIMER) {
            delivery.begin_ns = lc_now_ns();
            delivery.class_name = lc_qt_class_of(receiver);
        }
        delivery.titled = is_titling(type);
    }
    return delivery;
}

bool lc_qt_delivery_passes_on(lc_qt_delivery *delivery, const void *receiver, uint16_t type)
{
    if (type == UPDATE_REQUEST && delivery->type == TIMER) { /* a window's own timer paces its drawing */
        const uint64_t begin_ns = delivery->begin_ns;
        const bool titled = delivery->titled;
        *delivery = lc_qt_delivery_begin(receiver, NULL, type);
        delivery->begin_ns = begin_ns;
        delivery->titled = titled;
        return true;
    }
    delivery->titled |= is_titling(type);
    const bool paints = type == PAINT && is_drawing(delivery->type);
    delivery->painted += paints;
    if (!paints && (type != delivery->type || !is_input(type))) {
        return false;
    }
    delivery->work = lc_qt_work((uint64_t)(uintptr_t)receiver, type);
    if (!paints && delivery->class_name != NULL) {
        delivery->class_name = lc_qt_class_of(receiver);
    }
    return true;
}

typedef struct {
    uint64_t receiver;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t number;
    uint64_t asked_ns;
    const char *class_name;
    uint16_t type;
} told;

static void call(const told *what)
{
    const char *class_begin = "";
    const char *name = what->class_name != NULL ? what->class_name : "";
    const uint32_t class_bytes = lc_qt_class_name(name, (uint32_t)strlen(name), &class_begin);
    PyObject *function = Py_NewRef(listener);
    PyObject *result =
        PyObject_CallFunction(function, "Hs#KKKKK", what->type, class_begin, (Py_ssize_t)class_bytes,
                              (unsigned long long)what->receiver, (unsigned long long)what->begin_ns,
                              (unsigned long long)what->end_ns, (unsigned long long)what->number,
                              (unsigned long long)what->asked_ns);
    Py_DECREF(function);
    Py_XDECREF(result);
    lc_raised_pass_on();
}

static void tell(const told *what)
{
    if (!lc_may_call_python()) {
        return;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    if (listener != NULL) {
        const lc_raised before = lc_raised_take();
        call(what);
        lc_raised_put_back(before);
    }
    PyGILState_Release(state);
}

#define SPIN_BROKEN_NS UINT64_C(100000000)
#define SPIN_GAP_NS UINT64_C(500000)      /* on average: what the loop does between two runs is no wait */
#define SPIN_TOLD_NS UINT64_C(1000000000) /* as model.figures.spin_told_after_ns */
#define LONG_RUN_NS UINT64_C(20000000)

static bool is_without_pause(const lc_qt_spin *spin) { return spin->gaps_ns < spin->gaps * SPIN_GAP_NS; }

/* Tells a spin as far as it has gone; with the same begin as before: it has grown. */
static void tell_spin(const lc_qt_spin *spin)
{
    const told what = {.receiver = spin->receiver,
                       .begin_ns = spin->begin_ns,
                       .end_ns = spin->end_ns,
                       .number = spin->runs,
                       .class_name = spin->class_name,
                       .type = TIMER};
    tell(&what);
}

static void note_timer(const lc_qt_delivery *delivery, lc_qt_spin *spin, uint64_t end_ns)
{
    const uint64_t gap_ns = delivery->begin_ns - spin->end_ns;
    const bool goes_on = spin->work == delivery->work && gap_ns < SPIN_BROKEN_NS;
    const uint64_t run_ns = end_ns - delivery->begin_ns;
    /* Not one that was interrupted, among many. */
    const bool took_long = run_ns >= LONG_RUN_NS && run_ns >= (end_ns - spin->begin_ns) / 2u;
    const lc_qt_spin before = *spin;
    spin->end_ns = end_ns;
    spin->runs++;
    spin->gaps++;
    spin->gaps_ns += gap_ns;
    const bool is_pauseless = is_without_pause(spin);
    const uint64_t took_ns = end_ns - spin->begin_ns;
    if (goes_on && !took_long && took_ns <= spin->told_at_ns) {
        return;
    }
    if (goes_on && !took_long && is_pauseless) {
        spin->told_at_ns = took_ns + (took_ns / 4u > SPIN_TOLD_NS ? took_ns / 4u : SPIN_TOLD_NS);
        spin->gaps = spin->gaps_ns = 0;
        tell_spin(spin);
        return;
    }
    *spin = (lc_qt_spin){delivery->work,     delivery->begin_ns,  end_ns, 1, 0, 0, SPIN_TOLD_NS,
                         delivery->receiver, delivery->class_name};
    if (before.told_at_ns > SPIN_TOLD_NS && is_without_pause(&before)) { /* it is over */
        tell_spin(&before);
    }
    if (goes_on && took_long && is_pauseless) { /* one run, of a timer without a pause */
        tell_spin(spin);
    }
}

bool lc_qt_delivery_draws(const lc_qt_delivery *delivery)
{
    return delivery->begin_ns != 0 && is_drawing(delivery->type);
}

void lc_qt_delivery_end(const lc_qt_delivery *delivery, lc_qt_spin *spin)
{
    if (__builtin_expect(delivery->titled, 0) && __atomic_load_n(&listener, __ATOMIC_RELAXED) != NULL) {
        const told front = {.receiver = delivery->receiver, .type = WINDOW_TITLE_CHANGE};
        tell(&front);
    }
    if (__builtin_expect(delivery->begin_ns == 0, 1)) {
        return;
    }
    const uint64_t end_ns = lc_now_ns();
    if (delivery->type == TIMER) {
        note_timer(delivery, spin, end_ns);
        return;
    }
    const told what = {delivery->receiver,
                       delivery->begin_ns,
                       end_ns,
                       is_drawing(delivery->type) ? delivery->painted : delivery->stamp,
                       delivery->asked_ns,
                       delivery->class_name,
                       delivery->type};
    tell(&what);
}

PyObject *lc_qt_listen(PyObject *Py_UNUSED(module), PyObject *function)
{
    PyObject *before = listener;
    __atomic_store_n(&listener, function == Py_None ? NULL : Py_NewRef(function), __ATOMIC_RELAXED);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}
