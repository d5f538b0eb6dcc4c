#include "core/watchdog/watchdog.h"

#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "core/host/own_thread.h"
#include "core/signals/kill_signals.h"

enum { LATE_NS = 10 * 1000 * 1000, RIGHTS_NS = 1000 * 1000 * 1000 };

static long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

static size_t aligned(size_t bytes) { return (bytes + 63u) & ~(size_t)63u; }

/* But for what program threads need: one without the GIL may be ending what it has begun (module/agent.h). */
static void clear(lc_watchdog *w) { memset((char *)w + sizeof w->lanes, 0, sizeof *w - sizeof w->lanes); }

int lc_watchdog_open(lc_watchdog *w, lc_flight *flight, lc_frame_source *source,
                     const lc_watchdog_settings *settings, const char *checkpoint_path)
{
    clear(w);
    lc_checkpoint_open(&w->checkpoint, checkpoint_path, &w->life);
    const size_t watches = aligned(LC_WATCH_COUNT * sizeof *w->watches);
    const size_t no_lanes = aligned((LC_WATCH_COUNT - LC_LANE_COUNT) * sizeof *w->no_lanes);
    const size_t writers = aligned(LC_SLOT_COUNT * sizeof *w->writers);
    const size_t stack = aligned(sizeof *w->stack);
    const size_t looks = aligned(sizeof *w->looks);
    w->memory_bytes = watches + writers + 2 * stack + no_lanes + looks + sizeof *w->moved;
    w->memory = mmap(NULL, w->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w->memory == MAP_FAILED) {
        w->memory = NULL;
        return errno;
    }
    char *at = w->memory;
    w->watches = (lc_lane_watch *)at;
    w->writers = (lc_slot_writer *)(at + watches);
    w->stack = (lc_stack *)(at + watches + writers);
    w->holder_stack = (lc_stack *)(at + watches + writers + stack);
    w->no_lanes = (lc_lane *)(at + watches + writers + 2 * stack);
    w->looks = (lc_task_looks *)(at + watches + writers + 2 * stack + no_lanes);
    w->moved = (lc_moved *)(at + watches + writers + 2 * stack + no_lanes + looks);
    w->flight = flight;
    w->source = source;
    w->settings = *settings;
    w->settings.notify_socket = NULL;
    lc_feed_open(&w->feed, settings->notify_socket, settings->feed_ns);
    lc_storm_begin(&w->storm, settings->stalls_per_minute, lc_now_ns());
    lc_memory_reader_open(&w->reader, getpid());
    w->can_park = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    w->lanes = (lc_lane_context){
        .header = flight->header,
        .counters = flight->counters,
        .watchdog_bell = &w->bell,
        .begin_must_fence = !w->can_park,
        .source = source,
    };
    return 0;
}

static void close_files(lc_watchdog *w)
{
    for (uint64_t i = 0; i < LC_WATCH_COUNT && w->views_open + w->readings_open > 0; i++) {
        lc_stall_watch_close_view(w, i);
        lc_stall_watch_close_readings(w, i);
    }
    lc_host_view_close(&w->host);
}

/* Programs count their descriptors: ours do not come and go, but where each is missed. */
static void rest_files(lc_watchdog *w)
{
    if (!lc_kept_files_may_stay()) {
        close_files(w);
    }
}

void lc_watchdog_close(lc_watchdog *w)
{
    if (w->memory != NULL) {
        close_files(w); /* in a forked child: the parent's, inherited */
        munmap(w->memory, w->memory_bytes);
        lc_memory_reader_close(&w->reader);
        lc_checkpoint_close(&w->checkpoint);
    }
    clear(w);
}

uint64_t lc_watchdog_look(lc_watchdog *w, uint64_t now_ns)
{
    const lc_section *lanes = &w->flight->header->sections[LC_SECTION_LANES];
    const uint64_t used = LC_ACQUIRE(lanes->used);
    uint64_t next = LC_NO_DEADLINE;
    w->now = lc_flight_pair_clocks(w->flight);
    LC_STORE(w->flight->header->heartbeat_ns, now_ns);
    lc_close_left();
    for (uint64_t i = 0; i < used && i < LC_LANE_COUNT; i++) {
        const uint64_t wanted = lc_stall_watch_look(w, i, now_ns);
        next = wanted < next ? wanted : next;
    }
    return next;
}

static bool some_lane_works(const lc_watchdog *w)
{
    const uint64_t used = LC_ACQUIRE(w->flight->header->sections[LC_SECTION_LANES].used);
    for (uint64_t i = 0; i < used && i < LC_LANE_COUNT; i++) {
        const lc_lane *lane = lc_flight_lane(w->flight, i);
        if (LC_ACQUIRE(lane->state) == LC_LANE_ACTIVE &&
            LC_ACQUIRE(lane->turn_epoch) != w->watches[i].turns_seen) {
            return true;
        }
    }
    return false;
}

/* Dekker's problem: a lane stores "busy", then loads `parked`; we store `parked`, then load the lanes. One of
 * the two must see the other's store. The barrier for both sides is here, where it is rare. */
static void park(lc_watchdog *w, uint32_t bell_seen, uint64_t deadline)
{
    lc_header *header = w->flight->header;
    rest_files(w);
    atomic_store_explicit(&header->parked, 1, memory_order_seq_cst);
    if (w->can_park) {
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    } else {
        atomic_thread_fence(memory_order_seq_cst);
    }
    if (!some_lane_works(w) && lc_life_is(&w->life, LC_LIFE_RUNS)) {
        lc_bell_wait(&w->bell, bell_seen, deadline);
    }
    LC_STORE(header->parked, 0);
}

static void count_own_time(lc_watchdog *w)
{
    LC_STORE(w->flight->counters[LC_COUNTER_watchdog_cpu_ns], lc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* Runs the errands that have come; a parked watchdog is not woken for them. Returns when to look again. */
static uint64_t look_at_errands(lc_watchdog *w, uint64_t now_ns)
{
    const uint32_t errands = atomic_load_explicit(&w->flight->keeper->errands, memory_order_acquire);
    const uint64_t due_ns = atomic_load(&w->errand_ns);
    const bool is_due = due_ns != 0 && due_ns <= now_ns;
    if (w->run_errand != NULL && (is_due || errands != w->errands_seen) && w->run_errand()) {
        w->errands_seen = errands;
        uint64_t told_ns = due_ns;
        (void)(is_due && atomic_compare_exchange_strong(&w->errand_ns, &told_ns, 0));
        return LC_NO_DEADLINE;
    }
    return due_ns != 0 && !is_due ? due_ns : LC_NO_DEADLINE;
}

/* This thread gives up the rights that the main thread has given up: at most once in a second here, and
 * whenever the watchdog parks. */
static void follow_rights(lc_watchdog *w, uint64_t now_ns)
{
    if (now_ns >= w->rights_ns) {
        w->rights_ns = now_ns + RIGHTS_NS;
        lc_own_rights_follow();
    }
}

/* Looks until the watchdog is to stop; the last look completes the stalls that have ended. */
static void watch(lc_watchdog *w)
{
    while (lc_life_is(&w->life, LC_LIFE_RUNS)) {
        const uint32_t bell_seen = atomic_load_explicit(&w->bell, memory_order_acquire);
        follow_rights(w, lc_now_ns());
        const uint64_t wanted = lc_watchdog_look(w, lc_now_ns());
        lc_kill_signals_look(w);
        uint64_t unasked = lc_least(lc_liveness_look(w, lc_now_ns()), look_at_errands(w, lc_now_ns()));
        unasked = lc_least(unasked, lc_kill_signals_due(lc_now_ns()));
        unasked = lc_least(unasked, lc_outside_look(w, lc_now_ns(), wanted == LC_NO_DEADLINE));
        unasked = lc_least(unasked, lc_task_look_next(w, lc_now_ns()));
        const uint64_t deadline = lc_least(unasked, wanted);
        if (wanted == LC_NO_DEADLINE) {
            count_own_time(w);
            lc_own_rights_follow();
            park(w, bell_seen, unasked);
        } else if (!lc_bell_wait(&w->bell, bell_seen, deadline) && lc_now_ns() > deadline + LATE_NS) {
            lc_flight_count(w->flight, LC_COUNTER_watchdog_late, 1);
        }
        lc_flight_count(w->flight, LC_COUNTER_watchdog_wakeups, 1);
    }
    lc_watchdog_look(w, lc_now_ns());
    count_own_time(w);
    rest_files(w);
}

static void *run(void *argument)
{
    lc_watchdog *w = argument;
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1000000, 0, 0, 0); /* 1 ms: lets the kernel join our wake-ups to others */
    do {
        watch(w);
    } while (!lc_life_change(&w->life, LC_LIFE_STOPS, LC_LIFE_OVER));
    return NULL;
}

int lc_watchdog_start(lc_watchdog *w)
{
    if (lc_life_change(&w->life, LC_LIFE_STOPS, LC_LIFE_RUNS) || lc_life_is(&w->life, LC_LIFE_RUNS)) {
        return 0;
    }
    atomic_store(&w->life, LC_LIFE_RUNS);
    const int error = lc_own_thread_start(run, w, false);
    if (error != 0) {
        atomic_store(&w->life, LC_LIFE_OVER);
    }
    return error;
}

void lc_watchdog_ask_to_stop(lc_watchdog *w)
{
    (void)lc_life_change(&w->life, LC_LIFE_RUNS, LC_LIFE_STOPS);
    lc_bell_ring(&w->bell);
}
