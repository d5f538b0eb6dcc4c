/* Orders of locks, and the circles in them. */
#include "core/orders/orders.h"

#include <string.h>

#include "tests/check.h"

static lc_orders orders;
static unsigned dropped;

static void drop(void *place)
{
    CHECK(place != NULL);
    dropped++;
}

static void begin(void)
{
    CHECK(lc_orders_init(&orders, drop));
    dropped = 0;
}

static const void *lock(unsigned name) { return (const void *)(uintptr_t)(0x7F0000001000u + 48u * name); }

/* The thread acquires the last of these while it holds the others. How long a circle the order after `which` closes. */
static unsigned take(uint64_t thread, const char *names, unsigned which)
{
    uint32_t numbers[LC_ORDER_HELD_MAX];
    const uint32_t count = (uint32_t)strlen(names) - 1u;
    for (uint32_t i = 0; i <= count; i++) {
        numbers[i] = lc_orders_number(&orders, lock((unsigned)names[i]));
    }
    lc_order_step circle[LC_ORDER_CIRCLE_MAX];
    const uint32_t length = lc_orders_note(&orders, numbers, count, which, thread) != NULL
                                ? lc_orders_circle(&orders, numbers[which], numbers[count], circle)
                                : 0;
    for (uint32_t i = 0; i < length; i++) {
        const uint32_t next = (i + 1) % length;
        CHECK(circle[i].order->to == circle[next].order->from);
        CHECK(circle[i].witness->thread != circle[next].witness->thread);
        circle[i].order->told = true;
    }
    return length;
}

TEST(both_orders_by_two_threads_are_a_circle_and_told_once)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    CHECK(take(1, "AB", 0) == 0);
    CHECK(take(2, "BA", 0) == 2);
    CHECK(take(2, "BA", 0) == 0);
    CHECK(take(3, "BA", 0) == 0); /* another thread, the same circle */
    lc_orders_close(&orders);
}

TEST(one_thread_alone_never_waits_for_itself)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    CHECK(take(1, "BA", 0) == 0);
    CHECK(take(2, "BA", 0) == 2); /* a second one does it */
    lc_orders_close(&orders);
}

TEST(a_further_lock_around_both_keeps_them_apart)
{
    begin();
    CHECK(take(1, "GAB", 1) == 0);
    CHECK(take(2, "GBA", 1) == 0);
    CHECK(take(2, "HBA", 1) == 2); /* this time without it */
    lc_orders_close(&orders);
}

TEST(three_locks_in_a_ring)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    CHECK(take(2, "BC", 0) == 0);
    CHECK(take(3, "CA", 0) == 3);
    CHECK(take(2, "CA", 0) == 0);
    lc_orders_close(&orders);
}

TEST(the_threads_of_a_circle_are_different_ones_whoever_came_first)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    CHECK(take(2, "AB", 0) == 0);
    CHECK(take(2, "BA", 0) == 2); /* with the first thread's */
    lc_orders_close(&orders);
}

TEST(three_orders_of_two_threads_are_none)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    CHECK(take(1, "BC", 0) == 0);
    CHECK(take(2, "AB", 0) == 0);
    CHECK(take(2, "CA", 0) == 0);
    CHECK(take(3, "BC", 0) == 3);
    lc_orders_close(&orders);
}

TEST(what_a_thread_held_beside_is_told_apart)
{
    begin();
    CHECK(take(1, "GAB", 1) == 0);
    CHECK(take(2, "AB", 0) == 0);
    CHECK(take(2, "GBA", 1) == 0); /* the only other thread had G as well */
    CHECK(take(3, "BA", 0) == 2);
    lc_orders_close(&orders);
}

TEST(all_that_is_held_beside_counts)
{
    begin();
    CHECK(take(1, "123456789GAB", 10) == 0);
    CHECK(take(2, "abcdefghiGBA", 10) == 0);
    CHECK(take(2, "abcdefghiBA", 9) == 2);
    lc_orders_close(&orders);
}

TEST(both_orders_are_found_behind_however_many_locks)
{
    begin();
    uint32_t numbers[2] = {lc_orders_number(&orders, lock('B')), 0};
    for (unsigned i = 0; i < 70; i++) {
        numbers[0] = lc_orders_number(&orders, lock('B'));
        numbers[1] = lc_orders_number(&orders, lock(1000 + i));
        CHECK(lc_orders_note(&orders, numbers, 1, 0, 1) != NULL);
        for (unsigned j = 0; j < 70; j++) {
            numbers[0] = lc_orders_number(&orders, lock(1000 + i));
            numbers[1] = lc_orders_number(&orders, lock(2000 + 70 * i + j));
            CHECK(lc_orders_note(&orders, numbers, 1, 0, 1) != NULL);
        }
    }
    CHECK(take(1, "BA", 0) == 0);
    CHECK(take(2, "AB", 0) == 2);
    lc_orders_close(&orders);
}

TEST(one_order_closes_several_circles)
{
    begin();
    CHECK(take(1, "BC", 0) == 0);
    CHECK(take(2, "CA", 0) == 0);
    CHECK(take(2, "BA", 0) == 0);
    CHECK(take(3, "AB", 0) == 2);
    lc_order_step circle[LC_ORDER_CIRCLE_MAX];
    const uint32_t from = lc_orders_number(&orders, lock('A')), to = lc_orders_number(&orders, lock('B'));
    CHECK(lc_orders_circle(&orders, from, to, circle) == 3); /* not the one that was told */
    lc_orders_close(&orders);
}

TEST(two_of_three_by_one_thread_are_none)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    CHECK(take(1, "BC", 0) == 0);
    CHECK(take(2, "CA", 0) == 0);
    lc_orders_close(&orders);
}

TEST(a_ring_of_more_than_is_looked_for)
{
    begin();
    static const char *const ring[] = {"AB", "BC", "CD", "DE", "EF", "FG", "GA"};
    for (unsigned i = 0; i < 7; i++) {
        CHECK(take(i + 1u, ring[i], 0) == 0);
    }
    CHECK(take(9, "FA", 0) == LC_ORDER_CIRCLE_MAX); /* past G */
    lc_orders_close(&orders);
}

TEST(a_lock_that_is_gone_is_in_no_order)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    lc_orders_forget(&orders, lock('A'));
    lc_orders_forget(&orders, lock('Z')); /* never seen */
    CHECK(take(2, "BA", 0) == 0);         /* another lock at its address */
    CHECK(take(1, "AB", 0) == 2);
    lc_orders_close(&orders);
}

TEST(a_gate_is_in_no_order)
{
    begin();
    CHECK(take(1, "AB", 0) == 0);
    lc_orders_is_gate(&orders, lock('A'));
    CHECK(take(2, "BA", 0) == 0);
    CHECK(take(1, "AB", 0) == 0);
    lc_orders_forget(&orders, lock('A'));
    CHECK(take(1, "AB", 0) == 0); /* no gate any more */
    CHECK(take(2, "BA", 0) == 2);
    lc_orders_close(&orders);
}

TEST(places_are_dropped_with_their_orders)
{
    begin();
    const uint32_t numbers[] = {lc_orders_number(&orders, lock('A')), lc_orders_number(&orders, lock('B')),
                                lc_orders_number(&orders, lock('C'))};
    lc_orders_note(&orders, numbers, 1, 0, 1)->place = &dropped;
    lc_orders_note(&orders, numbers, 2, 0, 1)->place = &dropped;
    lc_orders_note(&orders, numbers, 2, 1, 1)->place = &dropped;
    lc_orders_note(&orders, numbers, 2, 1, 2)->place = &dropped;
    CHECK(lc_orders_note(&orders, numbers, 2, 1, 2) == NULL);
    CHECK(dropped == 0);
    const uint32_t last[] = {numbers[1], numbers[2]};
    lc_orders_note(&orders, last, 1, 0, 2)->place = &dropped; /* without the third: in the place of what it said before */
    CHECK(dropped == 1);
    lc_orders_forget(&orders, lock('B'));
    CHECK(dropped == 4);
    lc_orders_close(&orders);
    CHECK(dropped == 5);
}

TEST(where_there_is_no_room_nothing_more_is_learnt)
{
    begin();
    for (unsigned i = 0; i < LC_ORDER_LOCKS; i++) {
        CHECK(lc_orders_number(&orders, lock(i)) != 0);
    }
    CHECK(lc_orders_number(&orders, lock(LC_ORDER_LOCKS)) == 0);
    uint32_t noted = 0;
    for (uint32_t from = 1; from <= 6; from++) {
        for (uint32_t to = 7; to <= LC_ORDER_LOCKS; to++) {
            noted += lc_orders_note(&orders, (const uint32_t[]){from, to}, 1, 0, 1) != NULL;
        }
    }
    CHECK(noted == LC_ORDERS_MAX && orders.lost > 0);
    lc_orders_forget(&orders, lock(0)); /* makes room for locks and orders */
    CHECK(lc_orders_number(&orders, lock(LC_ORDER_LOCKS)) != 0);
    CHECK(lc_orders_note(&orders, (const uint32_t[]){9, 8}, 1, 0, 1) != NULL);
    lc_orders_close(&orders);
}

/* ---- against a simple model --------------------------------------------------------------- */

enum { LOCKS = 5, THREADS = 3, STEPS = 24, ROUNDS = 2000, GUARDS = LOCKS + 1 };

/* Whether a thread was seen in this order while it held this lock beside (GUARDS - 1: none). */
static bool model[LOCKS][LOCKS][THREADS][GUARDS];
static uint32_t seed = 7;

static uint32_t random_below(uint32_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % limit;
}

/* Whether a circle goes on from `here` to `first`, with these threads and guards used, and these locks passed. */
static bool has_circle(unsigned first, unsigned here, unsigned threads, unsigned guards, unsigned passed)
{
    for (unsigned all = 0; all < LOCKS * THREADS * GUARDS; all++) {
        const unsigned to = all % LOCKS, thread = all / LOCKS % THREADS, guard = all / LOCKS / THREADS;
        const unsigned guarded = guard == GUARDS - 1 ? 0 : 1u << guard;
        if (!model[here][to][thread][guard] || threads & 1u << thread || guards & guarded) {
            continue;
        }
        if (to == first || (!(passed & 1u << to) &&
                            has_circle(first, to, threads | 1u << thread, guards | guarded, passed | 1u << to))) {
            return true;
        }
    }
    return false;
}

static bool model_has_circle(void)
{
    for (unsigned first = 0; first < LOCKS; first++) {
        if (has_circle(first, first, 0, 0, 1u << first)) {
            return true;
        }
    }
    return false;
}

/* A round without guards, where no witness is left out: what is told is what the model has. With guards: no more than that. */
static bool play(bool guarded)
{
    bool told = false;
    for (unsigned step = 0; step < STEPS && !told; step++) {
        const unsigned names[3] = {random_below(LOCKS), random_below(LOCKS), random_below(LOCKS)};
        const uint32_t count = guarded ? 1u + random_below(2) : 1u;
        const unsigned thread = random_below(THREADS);
        if (names[0] == names[1] || names[2] == names[0] || names[2] == names[1]) {
            continue;
        }
        if (!guarded && random_below(12) == 0) { /* a lock goes, and another one comes to its address */
            for (unsigned i = 0; i < LOCKS; i++) {
                memset(model[names[0]][i], 0, sizeof model[0][0]);
                memset(model[i][names[0]], 0, sizeof model[0][0]);
            }
            lc_orders_forget(&orders, lock(names[0]));
            continue;
        }
        uint32_t numbers[3];
        for (uint32_t i = 0; i <= count; i++) {
            numbers[i] = lc_orders_number(&orders, lock(names[i]));
        }
        for (uint32_t which = 0; which < count; which++) {
            lc_order_step circle[LC_ORDER_CIRCLE_MAX];
            model[names[which]][names[count]][thread][count == 2 ? names[1 - which] : GUARDS - 1u] = true;
            told |= lc_orders_note(&orders, numbers, count, which, 1u + thread) != NULL &&
                    lc_orders_circle(&orders, numbers[which], numbers[count], circle) != 0;
        }
        CHECK(guarded ? !told || model_has_circle() : told == model_has_circle());
    }
    return told;
}

TEST(the_first_circle_is_told_when_the_model_has_one)
{
    unsigned told[2] = {0, 0};
    for (unsigned round = 0; round < ROUNDS; round++) {
        begin();
        memset(model, 0, sizeof model);
        told[round % 2] += play(round % 2 == 1);
        lc_orders_close(&orders);
    }
    CHECK(told[0] > ROUNDS / 10 && told[0] < ROUNDS / 2 && told[1] > ROUNDS / 10 && told[1] < ROUNDS / 2);
}

int main(void) { return run_tests(); }
