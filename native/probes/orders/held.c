#include "probes/orders/held.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "module/thread_lane.h"

enum { HELD_HASHES = 4096, SWEEP_AT = 16 };

static lc_holder *holders; /* of all threads that have acquired a lock */
static uint64_t holder_count;
static _Atomic uint32_t ended_count;
static uint32_t held_counts[HELD_HASHES]; /* how many held locks have this hash: 0 for most, so that no thread need be looked at */
static _Thread_local lc_holder *own __attribute__((tls_model("initial-exec")));
static pthread_key_t ends;

static uint32_t *held_count(const PyObject *lock) { return &held_counts[(uintptr_t)lock / 16u % HELD_HASHES]; }

/* ---- what a thread holds ------------------------------------------------------------------ */

static lc_held_lock *find(lc_holder *holder, PyObject *lock)
{
    for (uint32_t i = holder->count; i-- > 0;) {
        if (holder->locks[i].lock == lock) {
            return &holder->locks[i];
        }
    }
    return NULL;
}

/* NULL: no thread is known to hold it. */
static lc_holder *holder_of(PyObject *lock)
{
    lc_holder *holder = *held_count(lock) != 0 ? holders : NULL;
    while (holder != NULL && find(holder, lock) == NULL) {
        holder = holder->next;
    }
    return holder;
}

/* Its code, whose reference is the caller's now: to let go of it may run code of the program's. */
static PyObject *take_out(lc_holder *holder, lc_held_lock *held)
{
    PyObject *code = (PyObject *)held->code;
    --*held_count(held->lock);
    if (held->name != NULL && --held->name->owners == 0) {
        free(held->name);
    }
    holder->count--;
    memmove(held, held + 1, (size_t)(&holder->locks[holder->count] - held) * sizeof *held);
    return code;
}

static void empty(lc_holder *holder)
{
    holder->beyond = 0;
    while (holder->count > 0) {
        Py_DECREF(take_out(holder, &holder->locks[holder->count - 1]));
    }
}

/* ---- threads ------------------------------------------------------------------------------ */

/* The thread's last: it has no GIL any more. Other keys' destructors may still run Python: that is another holder then. */
static void thread_ends(void *holder)
{
    own = NULL;
    atomic_store(&((lc_holder *)holder)->ended, true);
    atomic_fetch_add(&ended_count, 1);
}

/* All are out of the list before the first one is emptied, which may run code of the program's. */
static void free_those_of_ended_threads(void)
{
    lc_holder *gone = NULL;
    for (lc_holder **place = &holders; *place != NULL;) {
        lc_holder *holder = *place;
        if (atomic_load(&holder->ended)) {
            *place = holder->next;
            holder->next = gone;
            gone = holder;
            atomic_fetch_sub(&ended_count, 1);
        } else {
            place = &holder->next;
        }
    }
    while (gone != NULL) {
        lc_holder *holder = gone;
        gone = holder->next;
        empty(holder);
        free(holder);
    }
}

/* NULL: this thread is ours, or there is no memory. */
static lc_holder *own_holder(void)
{
    if (own != NULL || lc_thread_is_ours) {
        return own;
    }
    lc_holder *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL || pthread_setspecific(ends, fresh) != 0) {
        free(fresh);
        return NULL;
    }
    fresh->number = ++holder_count;
    fresh->next = holders;
    holders = own = fresh;
    if (atomic_load(&ended_count) >= SWEEP_AT) {
        free_those_of_ended_threads();
    }
    return own;
}

bool lc_held_prepare(void)
{
    static bool has_key;
    if (!has_key && pthread_key_create(&ends, thread_ends) != 0) {
        PyErr_SetString(PyExc_RuntimeError, "the C library has no key for threads left");
        return false;
    }
    has_key = true;
    return true;
}

void lc_held_forget_all(void)
{
    for (lc_holder *holder = holders; holder != NULL; holder = holder->next) {
        empty(holder);
    }
    free_those_of_ended_threads();
}

/* ---- what a thread did -------------------------------------------------------------------- */

/* Up to 3.12: the lock that a Thread holds while it lives. It is released in C, and is not the program's. */
static bool is_thread_end(PyObject *lock)
{
#if PY_VERSION_HEX < 0x030D0000
    const lc_layout *l = &lc_the_agent.source.layout;
    PyObject *reference;
    memcpy(&reference, (const char *)PyThreadState_Get() + l->thread_end_data, sizeof reference);
    return reference != NULL && PyWeakref_CheckRefExact(reference) &&
           (PyObject *)((PyWeakReference *)reference)->wr_object == lock;
#else
    return lock == NULL;
#endif
}

static bool is_noted(void) { return lc_orders_now.runs && !lc_orders_now.looks; }

void lc_held_acquired(PyObject *lock, bool waits, bool again, uint32_t times)
{
    lc_holder *holder = is_noted() ? own_holder() : NULL;
    if (holder == NULL) {
        return;
    }
    lc_held_lock *known = find(holder, lock);
    if (known != NULL) {
        known->times += times;
        return;
    }
    lc_held_lock held = {.lock = lock, .times = times};
    const PyCodeObject *innermost;
    held.code = lc_acquiring_code(&innermost, &held.at);
    const bool is_for_news = !again && (PyObject *)innermost == lc_orders_now.waits;
    if (held.code == NULL || is_for_news || is_thread_end(lock)) {
        return;
    }
    if (holder->count == LC_ORDER_HELD_MAX) {
        holder->beyond++;
        return;
    }
    Py_INCREF((PyObject *)held.code);
    ++*held_count(lock);
    holder->locks[holder->count++] = held;
    if (waits && holder->count > 1 && holder->beyond == 0) { /* else not all is known that it holds */
        lc_note_orders(holder);
    }
}

void lc_held_released(PyObject *lock, bool wholly)
{
    if (!is_noted() || lc_thread_is_ours) {
        return;
    }
    lc_held_lock *held = own != NULL ? find(own, lock) : NULL;
    if (held != NULL) {
        if (wholly || --held->times == 0) {
            Py_DECREF(take_out(own, held));
        }
        return;
    }
    lc_holder *other = holder_of(lock);
    if (other != NULL) {
        PyObject *code = take_out(other, find(other, lock));
        lc_orders_is_gate(&lc_orders_now.orders, lock);
        Py_DECREF(code);
    } else if (own != NULL && own->beyond > 0) {
        own->beyond--;
    }
}

void lc_held_died(PyObject *lock)
{
    if (!lc_orders_now.runs) {
        return;
    }
    lc_holder *holder = holder_of(lock);
    PyObject *code = holder != NULL ? take_out(holder, find(holder, lock)) : NULL;
    if (!lc_orders_now.looks) {
        lc_orders_forget(&lc_orders_now.orders, lock);
    }
    Py_XDECREF(code);
}
