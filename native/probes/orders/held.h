/* Which locks of `threading` each thread holds, and the orders in which it acquired them (core/orders/orders.h).
 *
 *   lock_methods.c   what each acquire and release of the program comes by
 *   held.c           what each thread holds
 *   found.c          the orders, and the circles that were found in them
 *   order_place.c    where a thread was when it acquired one lock while it held another one
 *   lock_names.c     what locks and threads are called there
 *
 * All functions hold the GIL. Only locks of the interpreter that started it.
 */
#ifndef LOOPCANARY_HELD_H
#define LOOPCANARY_HELD_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/orders/orders.h"

enum { LC_ORDER_NAME_BYTES = 120 };

/* A text with several owners. */
typedef struct {
    uint32_t owners;
    char text[LC_ORDER_NAME_BYTES];
} lc_order_text;

typedef struct {
    PyObject *lock;      /* borrowed: one that dies is taken out */
    PyCodeObject *code;  /* where it was acquired, a reference, and the instruction's offset */
    int at;
    uint32_t number;     /* in the orders; 0: it is in none yet */
    uint32_t times;      /* an RLock that was acquired again */
    lc_order_text *name; /* NULL: not needed yet */
} lc_held_lock;

typedef struct lc_holder lc_holder;
struct lc_holder { /* a thread */
    lc_holder *next;
    uint64_t number; /* no other thread has had it */
    uint32_t count, beyond;
    lc_held_lock locks[LC_ORDER_HELD_MAX]; /* in the order in which they were acquired */
    _Atomic bool ended;
};

/* ---- held.c ------------------------------------------------------------------------------- */

/* lock_methods.c says what the calling thread did. `waits`: it would have waited without a limit; `again`: a Condition has its
 * lock back after a wait. */
void lc_held_acquired(PyObject *lock, bool waits, bool again, uint32_t times);
void lc_held_released(PyObject *lock, bool wholly);
void lc_held_died(PyObject *lock);

/* False with an exception: the C library has no room. `forget` empties what all threads hold. */
bool lc_held_prepare(void);
void lc_held_forget_all(void);

/* ---- found.c ------------------------------------------------------------------------------ */

typedef struct {
    bool runs;
    bool looks;      /* names are being looked for: what is acquired and released meanwhile is not noted */
    lc_orders orders;
    PyObject *waits; /* code in which a lock is acquired to wait for news, and is no lock */
    PyObject *files; /* tuple of names of files whose objects have locks inside: Condition, Queue, ExitStack */
    PyObject *active; /* dict of threads by their idents */
} lc_order_tracer;
extern lc_order_tracer lc_orders_now;

/* The last lock of the calling thread was acquired while it held the others. */
void lc_note_orders(lc_holder *own);

/* Adds to the module; negative with an exception set where that fails:
 *   orders_start(lock_type, rlock_type, waits, files, active)    begins; as in lc_order_tracer
 *   orders_stop()                                forgets all but what was found; orders_wait answers
 *   orders_wait() -> bool                        waits without the GIL until something was found; False: it is over
 *   orders_take() -> ((thread, holds, takes, frame | None, (frame, ...)), ...) | None     the oldest circle that was not taken yet,
 *                                                each frame (file, qualname, name, line)
 *   orders_lost() -> (int, int)                  orders and circles for which there was no room */
int lc_orders_add(PyObject *module);

/* ---- lock_methods.c ----------------------------------------------------------------------- */

/* Puts the hooks into the methods of these two types, and takes them out. False with an exception: they do not look as
 * expected. */
bool lc_lock_methods_put_in(PyTypeObject *lock, PyTypeObject *rlock);
void lc_lock_methods_take_out(void);

/* ---- order_place.c ------------------------------------------------------------------------ */

/* The calling thread's name and frames; several owners, NULL: no memory. */
typedef struct lc_order_stack lc_order_stack;
lc_order_stack *lc_order_stack_new(void);
void lc_order_stack_drop(lc_order_stack *stack);

/* Where a thread acquired one lock while it held another one. One owner; NULL: no memory. */
typedef struct lc_order_place lc_order_place;
lc_order_place *lc_order_place_new(lc_held_lock *held, lc_held_lock *taken, lc_order_stack *stack);
lc_order_place *lc_order_place_share(lc_order_place *place);
void lc_order_place_drop(void *place);
/* One element of what orders_take answers; NULL with an exception. */
PyObject *lc_order_place_told(const lc_order_place *place);

/* Code and instruction of the calling thread's innermost frame in a file that is none of `files`. Borrowed; NULL: it executes
 * nothing. `innermost`: the code of the very innermost one. */
PyCodeObject *lc_acquiring_code(const PyCodeObject **innermost, int *at);

/* Whether it is in one of the files. */
bool lc_is_plumbing(const PyCodeObject *code);

/* ---- lock_names.c ------------------------------------------------------------------------- */

/* `Lock 'Bank.accounts'`: by the first name that one of the calling thread's frames has for it, the innermost first; and the
 * thread's own. Into LC_ORDER_NAME_BYTES. */
void lc_name_lock(const lc_held_lock *held, char *into);
void lc_name_thread(char *into);

#endif
