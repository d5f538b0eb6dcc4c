/* The orders in which the program's threads acquire locks, and the circles that were found in them. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/watchdog/futex.h"
#include "module/agent.h"
#include "probes/hooks/raised.h"
#include "probes/orders/held.h"

enum { FOUND_MAX = 64, CIRCLES_OF_ONE_ORDER_MAX = 8 };

typedef struct {
    uint32_t count;
    lc_order_place *places[LC_ORDER_CIRCLE_MAX];
} found_circle;

lc_order_tracer lc_orders_now;
static found_circle found[FOUND_MAX]; /* the oldest first */
static uint32_t found_count;
static uint64_t circles_lost;
static uint64_t orders_lost; /* in those that are closed */
static bool stops;   /* orders_stop was called while names were looked for */
static lc_bell bell; /* rung when something was found, and at the end */

/* ---- circles ------------------------------------------------------------------------------ */

/* False: there is no room, or it is not known where all of it was. */
static bool keep(const lc_order_step *circle, uint32_t count)
{
    bool whole = found_count < FOUND_MAX;
    for (uint32_t i = 0; whole && i < count; i++) {
        whole = circle[i].witness->place != NULL;
    }
    if (!whole) {
        circles_lost++;
        return false;
    }
    found[found_count].count = count;
    for (uint32_t i = 0; i < count; i++) {
        circle[i].order->told = true;
        found[found_count].places[i] = lc_order_place_share(circle[i].witness->place);
    }
    found_count++;
    lc_bell_ring(&bell);
    return true;
}

static void look_for_circles(uint32_t from, uint32_t to)
{
    lc_order_step circle[LC_ORDER_CIRCLE_MAX];
    for (unsigned i = 0; i < CIRCLES_OF_ONE_ORDER_MAX; i++) {
        const uint32_t count = lc_orders_circle(&lc_orders_now.orders, from, to, circle);
        if (count == 0 || !keep(circle, count)) {
            return;
        }
    }
}

static void forget(void)
{
    lc_orders_now.runs = stops = false;
    lc_held_forget_all();
    orders_lost += lc_orders_now.orders.lost;
    lc_orders_close(&lc_orders_now.orders);
    Py_CLEAR(lc_orders_now.waits);
    Py_CLEAR(lc_orders_now.files);
    Py_CLEAR(lc_orders_now.active);
    lc_bell_ring(&bell);
}

/* Where the calling thread is. While names are looked for nothing changes in the orders. */
static lc_order_place *place_of(lc_held_lock *held, lc_held_lock *taken, lc_order_stack **stack)
{
    lc_orders_now.looks = true;
    *stack = *stack != NULL ? *stack : lc_order_stack_new();
    lc_order_place *place = *stack != NULL ? lc_order_place_new(held, taken, *stack) : NULL;
    lc_orders_now.looks = false;
    return place;
}

void lc_note_orders(lc_holder *own)
{
    uint32_t numbers[LC_ORDER_HELD_MAX];
    const uint32_t last = own->count - 1u;
    lc_order_stack *stack = NULL;
    const lc_raised raised = lc_raised_take(); /* C code may acquire with one set */
    for (uint32_t i = 0; i <= last; i++) {
        lc_held_lock *held = &own->locks[i];
        held->number = held->number != 0 ? held->number : lc_orders_number(&lc_orders_now.orders, held->lock);
        numbers[i] = held->number;
    }
    for (uint32_t which = 0; which < last && !stops && own->count == last + 1u; which++) {
        lc_order_witness *witness = lc_orders_note(&lc_orders_now.orders, numbers, last, which, own->number);
        if (witness != NULL) {
            witness->place = place_of(&own->locks[which], &own->locks[last], &stack);
            look_for_circles(numbers[which], numbers[last]);
        }
    }
    lc_order_stack_drop(stack);
    if (stops) {
        forget();
    }
    lc_raised_put_back(raised);
}

/* ---- Python ------------------------------------------------------------------------------- */

static PyObject *start(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *lock, *rlock, *waits, *files, *active;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!", &PyType_Type, &lock, &PyType_Type, &rlock, &PyCode_Type, &waits,
                          &PyTuple_Type, &files, &PyDict_Type, &active)) {
        return NULL;
    }
    if (!lc_the_agent.running || lc_orders_now.runs) {
        PyErr_SetString(PyExc_RuntimeError, "the native engine does not run, or orders are noted already");
        return NULL;
    }
    if (!lc_held_prepare()) {
        return NULL;
    }
    if (!lc_orders_init(&lc_orders_now.orders, lc_order_place_drop)) {
        return PyErr_NoMemory();
    }
    lc_orders_now.waits = Py_NewRef(waits);
    lc_orders_now.files = Py_NewRef(files);
    lc_orders_now.active = Py_NewRef(active);
    lc_orders_now.runs = true;
    circles_lost = orders_lost = 0;
    if (!lc_lock_methods_put_in((PyTypeObject *)lock, (PyTypeObject *)rlock)) {
        const lc_raised raised = lc_raised_take();
        forget();
        lc_raised_put_back(raised);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (lc_orders_now.runs) {
        lc_lock_methods_take_out();
        if (lc_orders_now.looks) {
            stops = true;
        } else {
            forget();
        }
    }
    Py_RETURN_NONE;
}

static PyObject *wait_for_one(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    uint32_t seen = atomic_load(&bell);
    while (lc_orders_now.runs && found_count == 0) {
        Py_BEGIN_ALLOW_THREADS
        lc_bell_wait(&bell, seen, LC_NO_DEADLINE);
        Py_END_ALLOW_THREADS
        seen = atomic_load(&bell);
    }
    return PyBool_FromLong(found_count != 0);
}

static PyObject *take_one(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    if (found_count == 0) {
        Py_RETURN_NONE;
    }
    const found_circle oldest = found[0];
    memmove(found, found + 1, --found_count * sizeof oldest);
    PyObject *told = PyTuple_New(oldest.count);
    for (uint32_t i = 0; i < oldest.count; i++) {
        PyObject *place = told != NULL ? lc_order_place_told(oldest.places[i]) : NULL;
        if (place != NULL) {
            PyTuple_SET_ITEM(told, i, place);
        } else {
            Py_CLEAR(told);
        }
        lc_order_place_drop(oldest.places[i]);
    }
    return told;
}

static PyObject *lost(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("(KK)", (unsigned long long)(orders_lost + lc_orders_now.orders.lost),
                         (unsigned long long)circles_lost);
}

static PyMethodDef functions[] = {
    {"orders_start", start, METH_VARARGS, "Notes in which order locks are acquired: held.h."},
    {"orders_stop", stop, METH_NOARGS, "Notes no more, and forgets them."},
    {"orders_wait", wait_for_one, METH_NOARGS, "Waits until a circle was found; False: it is over."},
    {"orders_take", take_one, METH_NOARGS, "The oldest circle that was not taken yet; None."},
    {"orders_lost", lost, METH_NOARGS, "Orders and circles for which there was no room."},
    {NULL, NULL, 0, NULL},
};

int lc_orders_add(PyObject *module) { return PyModule_AddFunctions(module, functions); }
