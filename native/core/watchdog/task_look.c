#include "core/watchdog/watch_state.h"

enum {
    QUIET_LOOKS = 2, /* once no loop turns any more */
    SLICE_NS = 1000000,
    COST_SHARE = 1000 /* at most one part in so many of a core goes into looks */
};

static uint64_t turns_of(const lc_watchdog *w)
{
    const uint64_t used = LC_ACQUIRE(w->flight->header->sections[LC_SECTION_LANES].used);
    uint64_t turns = 0;
    for (uint64_t i = 0; i < used && i < LC_LANE_COUNT; i++) {
        const lc_lane *lane = lc_flight_lane(w->flight, i);
        turns += LC_LOAD(lane->turn_epoch) + LC_LOAD(lane->generation);
    }
    return turns;
}

/* The half with the older look, emptied; false: there is no room for it. */
static bool begin(lc_watchdog *w, lc_task_looks *looks)
{
    lc_slot *slot = lc_flight_look_slot(w->flight, looks->serial % LC_LOOK_COUNT);
    if (slot == NULL) {
        return false;
    }
    LC_STORE(slot->serial, 0);
    atomic_thread_fence(memory_order_release);
    lc_slot_writer_begin(&looks->writer, slot);
    LC_STORE(slot->heap_used, LC_LOOK_OFFSET);
    return true;
}

static void end(lc_watchdog *w, lc_task_looks *looks, bool found)
{
    LC_RELEASE(looks->writer.slot->serial, ++looks->serial);
    if (found) {
        lc_watchdog_call_keeper(w);
        lc_bell_ring(&w->news);
    }
}

static uint64_t look(lc_watchdog *w, lc_task_looks *looks, uint64_t now_ns)
{
    if (!looks->goes_on) {
        looks->due_ns = now_ns + w->settings.look_ns; /* for another try, where there is no room now */
        looks->turns_before = looks->turns;
        if (!begin(w, looks)) {
            return looks->due_ns;
        }
    }
    const uint64_t before_ns = lc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    const lc_look_result result = w->source->look(w->source, &looks->writer, now_ns);
    looks->cost_ns += lc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    looks->goes_on = result == LC_LOOK_GOES_ON;
    if (looks->goes_on) {
        return now_ns + SLICE_NS;
    }
    if (result != LC_LOOK_NOTHING) {
        end(w, looks, result == LC_LOOK_FOUND);
    }
    const uint64_t rest_ns = result == LC_LOOK_SUSPECTS ? 0 : looks->cost_ns * COST_SHARE;
    looks->due_ns = now_ns + (rest_ns > w->settings.look_ns ? rest_ns : w->settings.look_ns);
    looks->cost_ns = 0;
    looks->quiet += looks->turns == looks->turns_before; /* else it saw what was before the last turn */
    return looks->quiet < QUIET_LOOKS ? looks->due_ns : LC_NO_DEADLINE;
}

uint64_t lc_task_look_next(lc_watchdog *w, uint64_t now_ns)
{
    lc_task_looks *looks = w->looks;
    const uint64_t turns = turns_of(w);
    if (w->settings.look_ns == 0 || turns == 0) {
        return LC_NO_DEADLINE;
    }
    if (turns != looks->turns) {
        const bool was_quiet = looks->turns == 0 || looks->quiet >= QUIET_LOOKS;
        looks->turns = turns;
        looks->quiet = 0;
        looks->due_ns = was_quiet ? now_ns + w->settings.look_ns : looks->due_ns;
    }
    if (looks->quiet >= QUIET_LOOKS) {
        return LC_NO_DEADLINE;
    }
    return looks->goes_on || now_ns >= looks->due_ns ? look(w, looks, now_ns) : looks->due_ns;
}
