#include "core/keeper/courier.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "core/host/own_thread.h"
#include "core/keeper/doorbell.h"
#include "core/lane/lane.h"

#define SECOND_NS UINT64_C(1000000000)
#define IDLE_NS (10u * SECOND_NS)         /* nothing owed for this time: the thread ends */
#define RING_PAUSE_NS (2u * SECOND_NS)    /* to the next ring, if all is still owed then; doubles */
#define RING_PAUSE_MOST_NS (60u * SECOND_NS)
#define START_PAUSE_NS (5u * SECOND_NS)   /* to the next start; doubles, as one that ends at once may do so again */
#define START_PAUSE_MOST_NS (300u * SECOND_NS)
#define GOOD_LIFE_NS (900u * SECOND_NS)   /* one that was started before that did not end at once */
#define SILENCE_NS (20u * SECOND_NS)      /* none is heard for this time, though some were started: there will be none */
#define DEAF_NS (60u * SECOND_NS)         /* one hears, and does nothing for this time: it was stopped */
#define NAP_NS (SECOND_NS / 100u)         /* between looks, however often the page's bell is rung */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

void lc_courier_open(lc_courier *c, lc_flight *flight)
{
    c->flight = flight;
    c->ring_pause_ns = RING_PAUSE_NS;
    c->next_ring_ns = LC_NO_DEADLINE;
    c->started_ns = 0;
    c->start_error = 0;
    c->start_pause_ns = START_PAUSE_NS;
    c->silent_ns = 0;
    atomic_store(&c->refusal, 0);
    atomic_store(&c->is_loaded, false);
    atomic_store(&c->has_notes, false);
    c->console.is_stuck = false;
    c->console.rest_bytes = 0;
    atomic_store(&c->done, atomic_load(&c->asked));
    atomic_store(&c->outcome, 0);
}

/* ---- ring and start ------------------------------------------------------------------------- */

static int start(lc_courier *c, const lc_keeper_words *words, uint64_t now_ns)
{
    if (c->started_ns != 0 && now_ns < c->started_ns + c->start_pause_ns && !lc_keeper_words_ended_well(words)) {
        return c->start_error != 0 ? c->start_error : now_ns < c->started_ns + START_PAUSE_NS ? EINPROGRESS : EAGAIN;
    }
    const int error = lc_keeper_words_start(words);
    if (error == EINPROGRESS) {
        return error; /* by another process */
    }
    if (c->started_ns != 0) {
        const bool lived = now_ns > c->started_ns + GOOD_LIFE_NS;
        c->start_pause_ns = lived ? START_PAUSE_NS : least(2u * c->start_pause_ns, START_PAUSE_MOST_NS);
    }
    c->started_ns = now_ns;
    c->start_error = error;
    lc_flight_count(c->flight, error ? LC_COUNTER_keepers_refused : LC_COUNTER_keepers_started, 1);
    return error ? error : EINPROGRESS;
}

static int ring(lc_courier *c, uint64_t now_ns)
{
    const lc_keeper_words *words = atomic_load_explicit(&c->words, memory_order_acquire);
    if (words == NULL) {
        return ENOENT;
    }
    lc_keeper_words_link(words);
    const int error = lc_doorbell_ring(words->paths.bell);
    if (error == ENXIO || error == ENOENT) {
        return start(c, words, now_ns);
    }
    if (error != 0) {
        lc_flight_count(c->flight, LC_COUNTER_keepers_refused, 1);
    }
    return error;
}

static bool is_for_good(const lc_courier *c, int outcome)
{
    /* Descriptors may be free later, and nothing can be stored without one. */
    return outcome != EINPROGRESS && outcome != EMFILE && outcome != ENFILE && (outcome != EAGAIN || c->start_error == EAGAIN);
}

static bool loads_late(uint64_t takes) { return takes == LC_TAKES_PROGRAM || takes == LC_TAKES_LATER; }

/* Ended, and not taken by a keeper. */
static bool has_ended(const lc_flight *flight, uint64_t index)
{
    const lc_slot *slot = lc_flight_slot(flight, index);
    return LC_ACQUIRE(slot->state) == LC_SLOT_ENDED && LC_LOAD(flight->keeper->taken[index]) != LC_LOAD(slot->serial);
}

static uint64_t slots_used(const lc_flight *flight)
{
    return least(LC_ACQUIRE(flight->header->sections[LC_SECTION_SLOTS].used), LC_SLOT_COUNT);
}

static bool has_any_ended(const lc_flight *flight)
{
    bool found = false;
    for (uint64_t i = 0; i < slots_used(flight) && !found; i++) {
        found = has_ended(flight, i);
    }
    return found;
}

/* Where there will be no keeper, the program takes its stalls itself. */
static void hand_back(lc_courier *c, int outcome, uint64_t now_ns)
{
    const uint64_t beat_ns = LC_LOAD(c->flight->keeper->beat_ns);
    const bool is_heard = outcome == 0;
    if (is_heard && (LC_LOAD(c->flight->header->takes) != LC_TAKES_KEEPER || !has_any_ended(c->flight))) {
        c->silent_ns = 0;
        return;
    }
    if (c->silent_ns == 0 || (beat_ns > c->silent_ns && beat_ns <= now_ns)) {
        c->silent_ns = now_ns;
    }
    const bool is_told = atomic_load(&c->refusal) != 0 || c->take_over == NULL;
    const bool is_over = now_ns - c->silent_ns >= (is_heard ? DEAF_NS : SILENCE_NS);
    if ((is_over || (!is_heard && is_for_good(c, outcome))) && !is_told) {
        atomic_store(&c->refusal, is_heard ? EBUSY : outcome);
        if (!c->take_over()) {
            atomic_store(&c->refusal, 0);
        }
    }
}

static bool has_hang(const lc_flight *flight)
{
    bool found = false;
    for (uint64_t i = 0; i < slots_used(flight) && !found; i++) {
        const lc_slot *slot = lc_flight_slot(flight, i);
        found = LC_ACQUIRE(slot->state) == LC_SLOT_STALL && LC_LOAD(slot->level) >= LC_LEVEL_HANG;
    }
    return found;
}

/* The first thing that the program itself judges has ended, or is a hang that no keeper tells: now it loads what that takes. */
static void load(lc_courier *c, uint64_t takes)
{
    const lc_flight *flight = c->flight;
    if (atomic_load(&c->is_loaded) || c->take_over == NULL || !loads_late(takes)) {
        return;
    }
    if (has_any_ended(flight) || atomic_load(&c->has_notes) || (takes == LC_TAKES_LATER && has_hang(flight))) {
        atomic_store(&c->is_loaded, true); /* before it is told: a load that fails says so on another thread */
        if (!c->take_over()) {
            atomic_store(&c->is_loaded, false);
        }
    }
}

static bool deal_with_wishes(lc_courier *c, uint64_t now_ns)
{
    const uint32_t asked = atomic_load(&c->asked);
    const bool is_new = asked != atomic_load(&c->done);
    if (!is_new && now_ns < c->next_ring_ns) {
        return false;
    }
    c->ring_pause_ns = is_new ? RING_PAUSE_NS : least(2u * c->ring_pause_ns, RING_PAUSE_MOST_NS);
    if (is_new || lc_courier_is_owed(c)) {
        const uint64_t takes = LC_LOAD(c->flight->header->takes);
        load(c, takes);
        if (takes != LC_TAKES_LATER) {
            const int outcome = ring(c, now_ns);
            atomic_store(&c->outcome, outcome);
            hand_back(c, outcome, now_ns);
        }
        c->next_ring_ns = now_ns + c->ring_pause_ns;
    } else {
        c->next_ring_ns = LC_NO_DEADLINE;
    }
    atomic_store(&c->done, asked);
    lc_bell_ring_shared(&c->flight->keeper->bell); /* for lc_courier_ring, lc_courier_see_off */
    return is_new;
}

/* ---- texts ------------------------------------------------------------------------------------- */

/* Whatever the page says: it is read once, into memory of our own. */
static bool put_text(lc_courier *c)
{
    char text[LC_KEEPER_TEXT_BYTES];
    lc_keeper *page = c->flight->keeper;
    lc_word *written = &c->flight->header->text_written;
    const uint64_t number = LC_LOAD(*written) + 1u;
    if (LC_ACQUIRE(page->text_number) != number) {
        return false;
    }
    const uint64_t bytes = LC_LOAD(page->text_bytes);
    const bool fits = bytes <= sizeof text;
    memcpy(text, page->text, fits ? bytes : 0u);
    const bool shown = fits && lc_console_write(&c->console, text, bytes);
    lc_flight_count(c->flight, shown ? LC_COUNTER_texts_written : LC_COUNTER_texts_dropped, 1);
    LC_RELEASE(*written, number);
    lc_bell_ring_shared(&page->bell);
    return true;
}

/* ---- the thread ---------------------------------------------------------------------------------- */

bool lc_courier_is_owed(const lc_courier *c)
{
    const lc_flight *flight = c->flight;
    const uint64_t takes = LC_LOAD(flight->header->takes);
    const bool is_to_load = loads_late(takes) && !atomic_load(&c->is_loaded);
    const bool ends_count = takes == LC_TAKES_KEEPER || is_to_load;
    if (is_to_load && atomic_load(&c->has_notes)) {
        return true;
    }
    for (uint64_t i = 0; takes != LC_TAKES_DRAIN && i < slots_used(flight); i++) {
        if (LC_ACQUIRE(lc_flight_slot(flight, i)->state) == LC_SLOT_STALL || (ends_count && has_ended(flight, i))) {
            return true;
        }
    }
    return false;
}

bool lc_courier_look(lc_courier *c, uint64_t now_ns)
{
    const bool rang = deal_with_wishes(c, now_ns);
    return put_text(c) || rang;
}

/* Until it is to stop; true: nothing has been owed for long enough. */
static bool serve(lc_courier *c)
{
    lc_bell *const bell = &c->flight->keeper->bell;
    uint64_t last_ns = lc_now_ns();
    while (lc_life_is(&c->life, LC_LIFE_RUNS)) {
        const uint32_t seen = atomic_load_explicit(bell, memory_order_acquire);
        const uint64_t now_ns = lc_now_ns();
        const bool is_owed = lc_courier_is_owed(c);
        const bool worked = lc_courier_look(c, now_ns);
        last_ns = worked || is_owed ? now_ns : last_ns;
        if (is_owed && c->next_ring_ns == LC_NO_DEADLINE) { /* a load that took long has failed */
            c->next_ring_ns = now_ns + c->ring_pause_ns;
        }
        const uint64_t idle_ns = last_ns + IDLE_NS;
        if (now_ns >= idle_ns && lc_life_change(&c->life, LC_LIFE_RUNS, LC_LIFE_STOPS)) {
            return true;
        }
        if (!worked && lc_bell_wait_shared(bell, seen, least(c->next_ring_ns, idle_ns))) {
            lc_bell_wait(&c->never, 0, lc_now_ns() + NAP_NS);
        }
    }
    return false;
}

/* Who asks while it stops by itself lets it go on, or asked before and is seen here. Once it is over it touches nothing. */
static void *run(void *argument)
{
    lc_courier *c = argument;
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    do {
        while (serve(c) && atomic_load(&c->asked) != atomic_load(&c->done)) {
            (void)lc_life_change(&c->life, LC_LIFE_STOPS, LC_LIFE_RUNS);
        }
    } while (!lc_life_change(&c->life, LC_LIFE_STOPS, LC_LIFE_OVER));
    return NULL;
}

lc_courier_wish lc_courier_ask(lc_courier *c)
{
    const lc_courier_wish wish = {c->flight->keeper, c->flight->header, atomic_fetch_add(&c->asked, 1) + 1u};
    if (lc_life_change(&c->life, LC_LIFE_STOPS, LC_LIFE_RUNS) || !lc_life_change(&c->life, LC_LIFE_OVER, LC_LIFE_RUNS)) {
        lc_bell_ring_shared(&wish.page->bell);
        return wish;
    }
    const int error = lc_own_thread_start(run, c);
    if (error != 0) {
        lc_flight_count(c->flight, LC_COUNTER_keepers_refused, 1);
        atomic_store(&c->outcome, error);
        atomic_store(&c->done, wish.number);
        atomic_store(&c->life, LC_LIFE_OVER);
    }
    return wish;
}

void lc_courier_ask_to_stop(lc_courier *c)
{
    if (lc_life_change(&c->life, LC_LIFE_RUNS, LC_LIFE_STOPS)) {
        lc_bell_ring_shared(&c->flight->keeper->bell);
    }
}

/* ---- who waits for it -------------------------------------------------------------------------------- */

/* Whether the wish of this number was dealt with. */
static bool is_done(const lc_courier *c, uint32_t number) { return (int32_t)(atomic_load(&c->done) - number) >= 0; }

int lc_courier_wait(lc_courier *c, const lc_courier_wish *wish, uint64_t deadline_ns)
{
    lc_bell *const bell = &wish->page->bell;
    for (;;) {
        const uint32_t seen = atomic_load_explicit(bell, memory_order_acquire);
        if (is_done(c, wish->number)) {
            return atomic_load(&c->outcome);
        }
        if (lc_life_is(&c->life, LC_LIFE_OVER) || !lc_bell_wait_shared(bell, seen, deadline_ns)) {
            return ETIMEDOUT;
        }
    }
}

static bool is_closed(const lc_courier_wish *wish)
{
    return LC_ACQUIRE(wish->page->closed) == 1 &&
           LC_ACQUIRE(wish->page->text_number) == LC_ACQUIRE(wish->header->text_written);
}

bool lc_courier_see_off(lc_courier *c, const lc_courier_wish *wish, uint64_t deadline_ns)
{
    lc_bell *const bell = &wish->page->bell;
    const int outcome = lc_courier_wait(c, wish, deadline_ns);
    bool in_time = outcome == 0 || outcome == EINPROGRESS;
    while (!is_closed(wish) && in_time) {
        const uint32_t seen = atomic_load_explicit(bell, memory_order_acquire);
        in_time = is_closed(wish) || lc_bell_wait_shared(bell, seen, deadline_ns);
    }
    return is_closed(wish);
}
