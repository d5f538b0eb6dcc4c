/* In which order threads acquire locks: which one while they held which other one. A circle of such orders is a deadlock that
 * can happen.
 *
 * A circle is told only where each of its orders was seen of another thread, and no further lock was held around two of them:
 * else the threads are never between their two locks at the same time (K. Havelund, "Using Runtime Analysis to Guide Model
 * Checking of Java Programs", SPIN 2000; S. Bensalem, K. Havelund, "Dynamic Deadlock Analysis of Multi-Threaded Programs", 2005).
 *
 * Knows nothing of Python: a lock is an address. Not thread-safe; no system calls, and memory is asked for at the start only.
 */
#ifndef LOOPCANARY_ORDERS_H
#define LOOPCANARY_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#define LC_ORDER_LOCKS 8192u      /* that were acquired in some order, and live */
#define LC_ORDERS_MAX 32768u      /* between two of them */
#define LC_ORDER_HELD_MAX 16u     /* locks that a thread holds */
#define LC_ORDER_GUARDS (LC_ORDER_HELD_MAX - 2u)
#define LC_ORDER_WITNESSES 3u     /* threads that are remembered of an order */
#define LC_ORDER_CIRCLE_MAX 6u    /* orders of a circle */

/* A thread that acquired two locks in this order. */
typedef struct {
    uint64_t thread;                  /* 0: none */
    uint32_t guards[LC_ORDER_GUARDS]; /* what it held beside */
    uint32_t guard_count;
    void *place; /* the caller's */
} lc_order_witness;

typedef struct {
    uint32_t from, to; /* numbers of locks; from 0: free */
    lc_order_witness witnesses[LC_ORDER_WITNESSES];
    uint32_t next_of_hash, next_from, previous_from, next_to, previous_to; /* indexes, 0: none */
    bool told;                                                             /* in a circle that was told */
} lc_order;

typedef struct {
    const void *lock;      /* NULL: free */
    uint32_t number;       /* its index, and above that how many had this row before */
    uint32_t next_of_hash; /* of a free one: the next free one */
    uint32_t first_from, first_to;
    bool is_gate;
} lc_ordered_lock;

typedef struct {
    lc_ordered_lock *locks; /* [0] is none */
    lc_order *orders;       /* the same */
    uint32_t *lock_hashes, *order_hashes;
    uint32_t free_lock, free_order;
    uint32_t lock_count, order_count;
    uint64_t lost; /* orders for which there was no room */
    void (*drop)(void *place);
} lc_orders;

/* An order of a circle, by one of its threads. */
typedef struct {
    lc_order *order;
    const lc_order_witness *witness;
} lc_order_step;

/* `drop` is called with each place that is not NULL, when its order is forgotten. False: no memory. */
bool lc_orders_init(lc_orders *orders, void (*drop)(void *place));
void lc_orders_close(lc_orders *orders);

/* The number of a lock, which it has until it is forgotten, and no other one soon; 0: there is no room. */
uint32_t lc_orders_number(lc_orders *orders, const void *lock);

/* `thread` (not 0) has acquired `held[count]` while it held `held[0 .. count)`: notes its order after held[which]. The witness
 * whose place is to be set, until one of the two locks is forgotten. NULL: nothing new. */
lc_order_witness *lc_orders_note(lc_orders *orders, const uint32_t *held, uint32_t count, uint32_t which, uint64_t thread);

/* A circle that the order of these two locks closes, and in which is an order that was told in none: that order first. How many
 * orders it has, 0: there is none. Looks at a few thousand orders at most. */
uint32_t lc_orders_circle(lc_orders *orders, uint32_t from, uint32_t to, lc_order_step circle[LC_ORDER_CIRCLE_MAX]);

/* The lock is released by others than those who acquire it: it is a signal, and in no order. Remembered until it is forgotten. */
void lc_orders_is_gate(lc_orders *orders, const void *lock);

/* The lock is no more. */
void lc_orders_forget(lc_orders *orders, const void *lock);

#endif
