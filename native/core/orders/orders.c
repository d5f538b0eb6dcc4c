#include "core/orders/orders.h"

#include <stdlib.h>
#include <string.h>

enum { LOCK_HASHES = 2 * LC_ORDER_LOCKS, ORDER_HASHES = 2 * LC_ORDERS_MAX, LOOKED_AT_MAX = 4096, INDEX_BITS = 14 };

_Static_assert(LC_ORDER_LOCKS < 1u << INDEX_BITS, "an index fits into a number");

static uint32_t hash_of(uint64_t value, uint32_t room)
{
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(value >> 40) % room;
}

static uint32_t lock_hash(const void *lock) { return hash_of((uint64_t)(uintptr_t)lock >> 4, LOCK_HASHES); }

static uint32_t order_hash(uint32_t from, uint32_t to) { return hash_of((uint64_t)from << 32 | to, ORDER_HASHES); }

bool lc_orders_init(lc_orders *orders, void (*drop)(void *place))
{
    *orders = (lc_orders){
        .locks = calloc(LC_ORDER_LOCKS + 1u, sizeof *orders->locks),
        .orders = calloc(LC_ORDERS_MAX + 1u, sizeof *orders->orders),
        .lock_hashes = calloc(LOCK_HASHES, sizeof *orders->lock_hashes),
        .order_hashes = calloc(ORDER_HASHES, sizeof *orders->order_hashes),
        .drop = drop,
    };
    if (orders->locks == NULL || orders->orders == NULL || orders->lock_hashes == NULL || orders->order_hashes == NULL) {
        lc_orders_close(orders);
        return false;
    }
    return true;
}

static void drop_places(lc_orders *orders, lc_order *order)
{
    for (uint32_t i = 0; i < LC_ORDER_WITNESSES; i++) {
        if (order->witnesses[i].place != NULL) {
            orders->drop(order->witnesses[i].place);
        }
    }
}

void lc_orders_close(lc_orders *orders)
{
    for (uint32_t i = 1; orders->orders != NULL && i <= orders->order_count; i++) {
        drop_places(orders, &orders->orders[i]); /* a free one has none */
    }
    free(orders->locks);
    free(orders->orders);
    free(orders->lock_hashes);
    free(orders->order_hashes);
    *orders = (lc_orders){0};
}

/* ---- locks -------------------------------------------------------------------------------- */

static lc_ordered_lock *row_of(const lc_orders *orders, uint32_t number)
{
    return &orders->locks[number & ((1u << INDEX_BITS) - 1u)];
}

/* What leads to the lock's row, or would: a word that is 0. */
static uint32_t *place_of_lock(lc_orders *orders, const void *lock)
{
    uint32_t *place = &orders->lock_hashes[lock_hash(lock)];
    while (*place != 0 && orders->locks[*place].lock != lock) {
        place = &orders->locks[*place].next_of_hash;
    }
    return place;
}

/* A free row: one that was given back, else one that was never used. 0: there is none. */
static uint32_t free_lock(lc_orders *orders)
{
    const uint32_t index = orders->free_lock;
    if (index != 0) {
        orders->free_lock = orders->locks[index].next_of_hash;
        return index;
    }
    return orders->lock_count < LC_ORDER_LOCKS ? ++orders->lock_count : 0;
}

uint32_t lc_orders_number(lc_orders *orders, const void *lock)
{
    uint32_t *place = place_of_lock(orders, lock);
    if (*place == 0 && (*place = free_lock(orders)) != 0) {
        const uint32_t before = orders->locks[*place].number;
        const uint32_t number = before != 0 ? before + (1u << INDEX_BITS) : *place;
        orders->locks[*place] = (lc_ordered_lock){.lock = lock, .number = number};
    }
    return orders->locks[*place].number;
}

/* ---- orders ------------------------------------------------------------------------------- */

static uint32_t *place_of_order(lc_orders *orders, uint32_t from, uint32_t to)
{
    uint32_t *place = &orders->order_hashes[order_hash(from, to)];
    while (*place != 0 && (orders->orders[*place].from != from || orders->orders[*place].to != to)) {
        place = &orders->orders[*place].next_of_hash;
    }
    return place;
}

static uint32_t free_order(lc_orders *orders)
{
    const uint32_t index = orders->free_order;
    if (index != 0) {
        orders->free_order = orders->orders[index].next_of_hash;
        return index;
    }
    return orders->order_count < LC_ORDERS_MAX ? ++orders->order_count : 0;
}

static void link_order(lc_orders *orders, uint32_t index)
{
    lc_order *order = &orders->orders[index];
    lc_ordered_lock *from = row_of(orders, order->from), *to = row_of(orders, order->to);
    order->next_from = from->first_from;
    order->next_to = to->first_to;
    orders->orders[from->first_from].previous_from = index; /* [0] is nobody's */
    orders->orders[to->first_to].previous_to = index;
    from->first_from = to->first_to = index;
}

static void remove_order(lc_orders *orders, uint32_t index)
{
    lc_order *order = &orders->orders[index];
    *place_of_order(orders, order->from, order->to) = order->next_of_hash;
    uint32_t *from = order->previous_from != 0 ? &orders->orders[order->previous_from].next_from
                                               : &row_of(orders, order->from)->first_from;
    uint32_t *to =
        order->previous_to != 0 ? &orders->orders[order->previous_to].next_to : &row_of(orders, order->to)->first_to;
    *from = order->next_from;
    *to = order->next_to;
    orders->orders[order->next_from].previous_from = order->previous_from;
    orders->orders[order->next_to].previous_to = order->previous_to;
    drop_places(orders, order);
    *order = (lc_order){.next_of_hash = orders->free_order};
    orders->free_order = index;
}

static bool is_among(const uint32_t *numbers, uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

/* NULL: there is no room. */
static lc_order *new_order(lc_orders *orders, uint32_t from, uint32_t to)
{
    const uint32_t index = free_order(orders);
    if (index == 0) {
        orders->lost++;
        return NULL;
    }
    orders->orders[index] = (lc_order){.from = from, .to = to};
    *place_of_order(orders, from, to) = index;
    link_order(orders, index);
    return &orders->orders[index];
}

static lc_order_witness seen_now(const uint32_t *held, uint32_t count, uint32_t which, uint64_t thread)
{
    lc_order_witness seen = {.thread = thread};
    for (uint32_t i = 0; i < count && seen.guard_count < LC_ORDER_GUARDS; i++) {
        if (i != which && held[i] != 0) {
            seen.guards[seen.guard_count++] = held[i];
        }
    }
    return seen;
}

/* Whether all guards of the one are among the other's: what it says, the one says as well. */
static bool says_less(const lc_order_witness *one, const lc_order_witness *other)
{
    for (uint32_t i = 0; i < one->guard_count; i++) {
        if (!is_among(other->guards, other->guard_count, one->guards[i])) {
            return false;
        }
    }
    return true;
}

/* NULL: the order's witnesses say it already, or there are enough. */
static lc_order_witness *take_witness(lc_orders *orders, lc_order *order, const lc_order_witness *seen)
{
    lc_order_witness *place = NULL;
    for (uint32_t i = 0; i < LC_ORDER_WITNESSES; i++) {
        lc_order_witness *witness = &order->witnesses[i];
        if (witness->thread == seen->thread && says_less(witness, seen)) {
            return NULL;
        }
        const bool is_better = witness->thread == seen->thread && says_less(seen, witness);
        place = is_better || (place == NULL && witness->thread == 0) ? witness : place;
    }
    if (place != NULL) {
        if (place->place != NULL) {
            orders->drop(place->place);
        }
        *place = *seen;
    }
    return place;
}

lc_order_witness *lc_orders_note(lc_orders *orders, const uint32_t *held, uint32_t count, uint32_t which, uint64_t thread)
{
    const uint32_t from = held[which], to = held[count];
    if (from == 0 || to == 0 || from == to || row_of(orders, from)->is_gate || row_of(orders, to)->is_gate) {
        orders->lost += from == 0 || to == 0;
        return NULL;
    }
    const uint32_t index = *place_of_order(orders, from, to);
    lc_order *order = index != 0 ? &orders->orders[index] : new_order(orders, from, to);
    const lc_order_witness seen = seen_now(held, count, which, thread);
    return order != NULL ? take_witness(orders, order, &seen) : NULL;
}

/* ---- circles ------------------------------------------------------------------------------ */

typedef struct {
    lc_orders *orders;
    lc_order_step *circle;
    uint32_t length; /* of the circles that are looked for */
    uint32_t left;   /* orders that may still be looked at */
} circle_search;

/* Whether two threads can be between their two locks at the same time. */
static bool can_meet(const lc_order_witness *one, const lc_order_witness *other)
{
    bool can = one->thread != other->thread;
    for (uint32_t i = 0; can && i < one->guard_count; i++) {
        can = !is_among(other->guards, other->guard_count, one->guards[i]);
    }
    return can;
}

/* Chooses a witness for each step from this one on, who can meet all those before. */
static bool choose_witnesses(const circle_search *search, uint32_t step)
{
    if (step == search->length) {
        return true;
    }
    const lc_order *order = search->circle[step].order;
    for (uint32_t i = 0; i < LC_ORDER_WITNESSES && order->witnesses[i].thread != 0; i++) {
        bool can = true;
        for (uint32_t before = 0; can && before < step; before++) {
            can = can_meet(search->circle[before].witness, &order->witnesses[i]);
        }
        search->circle[step].witness = &order->witnesses[i];
        if (can && choose_witnesses(search, step + 1)) {
            return true;
        }
    }
    return false;
}

static bool is_told(const circle_search *search)
{
    for (uint32_t i = 0; i < search->length; i++) {
        if (!search->circle[i].order->told) {
            return false;
        }
    }
    return true;
}

static bool is_passed(const circle_search *search, uint32_t count, uint32_t lock)
{
    for (uint32_t i = 0; i < count; i++) {
        if (search->circle[i].order->from == lock) {
            return true;
        }
    }
    return false;
}

static bool close_circle(circle_search *search, uint32_t count);

/* The order comes after the `count` ones of the circle so far. */
static bool go_on_with(circle_search *search, uint32_t count, lc_order *order)
{
    if (search->left == 0) {
        return false;
    }
    search->left--;
    search->circle[count].order = order;
    if (count + 1 == search->length) {
        return order->to == search->circle[0].order->from && !is_told(search) && choose_witnesses(search, 0);
    }
    return !is_passed(search, count, order->to) && close_circle(search, count + 1);
}

static bool close_circle(circle_search *search, uint32_t count)
{
    lc_orders *orders = search->orders;
    const uint32_t here = search->circle[count - 1].order->to;
    if (count + 1 == search->length) { /* the last one is known */
        const uint32_t index = *place_of_order(orders, here, search->circle[0].order->from);
        return index != 0 && go_on_with(search, count, &orders->orders[index]);
    }
    for (uint32_t index = row_of(orders, here)->first_from; index != 0 && search->left != 0;
         index = orders->orders[index].next_from) {
        if (go_on_with(search, count, &orders->orders[index])) {
            return true;
        }
    }
    return false;
}

uint32_t lc_orders_circle(lc_orders *orders, uint32_t from, uint32_t to, lc_order_step circle[LC_ORDER_CIRCLE_MAX])
{
    const uint32_t index = *place_of_order(orders, from, to);
    circle_search search = {.orders = orders, .circle = circle, .length = 2, .left = LOOKED_AT_MAX};
    circle[0].order = &orders->orders[index];
    while (index != 0 && search.length <= LC_ORDER_CIRCLE_MAX && search.left != 0) {
        if (close_circle(&search, 1)) {
            return search.length;
        }
        search.length++;
    }
    return 0;
}

/* ---- ends --------------------------------------------------------------------------------- */

static void remove_orders_of(lc_orders *orders, lc_ordered_lock *lock)
{
    while (lock->first_from != 0) {
        remove_order(orders, lock->first_from);
    }
    while (lock->first_to != 0) {
        remove_order(orders, lock->first_to);
    }
}

void lc_orders_is_gate(lc_orders *orders, const void *lock)
{
    const uint32_t number = lc_orders_number(orders, lock);
    if (number != 0) {
        remove_orders_of(orders, row_of(orders, number));
        row_of(orders, number)->is_gate = true;
    }
}

void lc_orders_forget(lc_orders *orders, const void *lock)
{
    uint32_t *place = place_of_lock(orders, lock);
    const uint32_t index = *place;
    if (index != 0) {
        lc_ordered_lock *row = &orders->locks[index];
        remove_orders_of(orders, row);
        *place = row->next_of_hash;
        *row = (lc_ordered_lock){.number = row->number, .next_of_hash = orders->free_lock};
        orders->free_lock = index;
    }
}
