/* Ticks and CLOCK_MONOTONIC: their pairings, the rate between them, and where one of them stepped. */
#include <string.h>

#include "core/flight/flight.h"

enum { STEP_NS = 1000000 }; /* the clocks are read one after the other */

static uint64_t rate_of(const lc_flight *flight)
{
    return atomic_load_explicit(&flight->header->tick_ns_q32, memory_order_relaxed);
}

static void set_rate(lc_flight *flight, uint64_t rate)
{
    atomic_store_explicit(&flight->header->tick_ns_q32, rate, memory_order_relaxed);
}

static uint64_t slept_ns(void)
{
    const uint64_t boot_ns = lc_clock_read_ns(CLOCK_BOOTTIME), now_ns = lc_now_ns();
    return boot_ns > now_ns ? boot_ns - now_ns : 0u;
}

void lc_flight_begin_clocks(lc_flight *flight)
{
    enum { APART_NS = 2000000 };
    const uint64_t early_ns_max = UINT64_C(10000000000); /* a longer time may have a suspend in it */
    flight->paired = flight->refined = flight->looked = lc_clock_pair();
    uint64_t rate = UINT64_C(1) << 32;
    if (lc_clock_chosen != LC_CLOCK_MONOTONIC) {
        const lc_instant early = lc_clock_early;
        const bool is_recent = early.ns != 0 && flight->paired.ns - early.ns < early_ns_max;
        const lc_instant from = is_recent ? early : flight->paired;
        while (lc_now_ns() < from.ns + APART_NS) {
        }
        rate = lc_clock_rate_q32(from, lc_clock_pair(), rate);
    }
    set_rate(flight, rate);
    flight->header->anchor_ticks = flight->paired.ticks;
    flight->header->anchor_monotonic_ns = flight->paired.ns;
    flight->slept_ns = slept_ns();
}

/* Whether the ticks went otherwise than their rate says. CLOCK_MONOTONIC itself is slewed by half a per
 * mille. */
static bool has_stepped(const lc_flight *flight, lc_instant now)
{
    const lc_instant from = flight->refined;
    const uint64_t lasted_ns = now.ns > from.ns ? now.ns - from.ns : 0u;
    const uint64_t expected_ns = lc_clock_ns(from, now.ticks, rate_of(flight));
    const uint64_t apart_ns = expected_ns > now.ns ? expected_ns - now.ns : now.ns - expected_ns;
    return flight->header->clock_kind != LC_CLOCK_MONOTONIC &&
           apart_ns > STEP_NS + lasted_ns / (flight->is_refined ? 1000u : 100u);
}

static void remember_step(lc_flight *flight, lc_instant now)
{
    const lc_instant before = flight->looked;
    const bool is_back = now.ticks < before.ticks;
    if (!is_back && lc_clock_ns(before, now.ticks, rate_of(flight)) <= now.ns) {
        return; /* CLOCK_MONOTONIC was set ahead: how long something took, the ticks say */
    }
    if (flight->step_count == LC_CLOCK_STEPS) {
        memmove(flight->steps, flight->steps + 1, --flight->step_count * sizeof *flight->steps);
    }
    flight->steps[flight->step_count++] =
        (lc_clock_step){before, before.ticks / 2u + now.ticks / 2u, is_back};
}

/* A counter that was set back comes to where it was: from then on its readings are new ones. */
static void forget_old_steps(lc_flight *flight, lc_instant now)
{
    const unsigned count = flight->step_count;
    if (count > 0 && flight->steps[count - 1u].is_back && now.ticks > flight->steps[count - 1u].middle) {
        flight->step_count = 0;
    }
}

/* The rate of before is as good as ever; the offset is not. */
static void pair_anew(lc_flight *flight, lc_instant now)
{
    lc_header *header = flight->header;
    flight->paired = flight->refined = now;
    header->anchor_ticks = now.ticks;
    header->anchor_wall_ns += (int64_t)(now.ns - header->anchor_monotonic_ns);
    header->anchor_monotonic_ns = now.ns;
}

static void count_step(lc_flight *flight, lc_instant now)
{
    lc_flight_count(flight, LC_COUNTER_clock_steps, 1);
    if (atomic_load_explicit(&flight->counters[LC_COUNTER_clock_steps], memory_order_relaxed) > 1) {
        lc_clock_leave_counter(now, rate_of(flight));
        flight->header->clock_kind = LC_CLOCK_MONOTONIC;
    }
}

bool lc_flight_note_clocks(lc_flight *flight, lc_instant now, uint64_t slept)
{
    const bool was_suspended = (int64_t)(slept - flight->slept_ns) > STEP_NS;
    const bool stepped = has_stepped(flight, now);
    forget_old_steps(flight, now);
    if (was_suspended) {
        lc_flight_count(flight, LC_COUNTER_suspends, 1);
        flight->slept_ns = slept;
    }
    if (stepped) {
        remember_step(flight, now);
    }
    if (stepped || (was_suspended && flight->header->clock_kind != LC_CLOCK_MONOTONIC)) {
        pair_anew(flight, now);
    }
    if (stepped && !was_suspended) {
        count_step(flight, now);
    }
    flight->looked = now;
    return was_suspended || stepped;
}

lc_instant lc_flight_pair_clocks(lc_flight *flight)
{
    enum { REFINE_EVERY_NS = 1000000000 };
    const lc_instant now = lc_clock_pair();
    if (lc_flight_note_clocks(flight, now, slept_ns()) || now.ns < flight->refined.ns + REFINE_EVERY_NS ||
        flight->header->clock_kind == LC_CLOCK_MONOTONIC) {
        return now;
    }
    set_rate(flight, lc_clock_rate_q32(flight->paired, now, rate_of(flight)));
    flight->refined = now;
    flight->is_refined = true;
    return now;
}

uint64_t lc_flight_ns(const lc_flight *flight, uint64_t ticks)
{
    return lc_clock_ns(flight->paired, ticks, rate_of(flight));
}

uint64_t lc_flight_ns_near(const lc_flight *flight, lc_instant now, uint64_t ticks)
{
    for (unsigned i = flight->step_count; i-- > 0;) {
        const lc_clock_step *step = &flight->steps[i];
        if (step->is_back ? ticks <= step->middle : ticks >= step->middle) {
            break;
        }
        now = step->before;
    }
    return lc_clock_ns(now, ticks, rate_of(flight));
}
