/* The watchdog's own thread against program threads at full speed, and a drain that frees slots, or a
 * keeper that takes what is in them: under the thread sanitizer no race, and no stall is lost without
 * being counted. Parking and waking, too. */
#include <pthread.h>
#include <signal.h>

#include "core/keeper/keeper_page.h"
#include "tests/core/lane/bench_lane.h"

enum { THREADS = 4, ROUNDS = 3000, STALL_EVERY = 50 };

static stage s;
static lc_lane *lanes[THREADS];
static _Atomic bool over;
static _Atomic uint64_t drained;

static void *program_thread(void *argument)
{
    lc_lane *lane = argument;
    const lc_lane_context *context = stage_context(&s);
    const uint64_t stall = lc_ns_to_ticks(2u * THRESHOLD_MS * MS, LC_LOAD(s.flight.header->tick_ns_q32));
    LC_STORE(lane->tid, (uint64_t)syscall(SYS_gettid));
    for (int i = 1; i <= ROUNDS; i++) {
        lc_turn_begin(context, lane);
        lc_callback_begin(lane, 7, 0);
        if (i % STALL_EVERY == 0) {
            LC_RELEASE(lane->begin, LC_LOAD(lane->begin) - stall);
            LC_RELEASE(lane->turn_begin, LC_LOAD(lane->turn_begin) - stall);
            sched_yield();
        }
        lc_callback_end(context, lane);
        lc_turn_end(context, lane);
    }
    return NULL;
}

static uint64_t free_ended_slots(void)
{
    uint64_t freed = 0;
    const uint64_t used = LC_ACQUIRE(s.flight.header->sections[LC_SECTION_SLOTS].used);
    for (uint64_t i = 0; i < used; i++) {
        lc_slot *it = lc_flight_slot(&s.flight, i);
        if (LC_ACQUIRE(it->state) == LC_SLOT_ENDED) {
            CHECK(LC_LOAD(it->end_ns) > LC_LOAD(it->begin_ns));
            LC_RELEASE(it->state, LC_SLOT_FREE);
            freed++;
        }
    }
    return freed;
}

/* As a keeper does, which cannot move a state. The serial comes first: a state that is loaded after it is
 * no earlier stall's. */
static uint64_t take_ended_slots(void)
{
    uint64_t taken = 0;
    const uint64_t used = LC_ACQUIRE(s.flight.header->sections[LC_SECTION_SLOTS].used);
    for (uint64_t i = 0; i < used; i++) {
        const lc_slot *it = lc_flight_slot(&s.flight, i);
        const uint64_t serial = LC_ACQUIRE(it->serial);
        if (LC_LOAD(s.flight.keeper->taken[i]) != serial && LC_ACQUIRE(it->state) == LC_SLOT_ENDED) {
            CHECK(LC_LOAD(it->serial) == serial && LC_LOAD(it->end_ns) > LC_LOAD(it->begin_ns));
            LC_RELEASE(s.flight.keeper->taken[i], serial);
            taken++;
        }
    }
    return taken;
}

static uint64_t (*empty_slots)(void);

static void *drain_thread(void *unused)
{
    (void)unused;
    while (!atomic_load(&over)) {
        const uint32_t seen = atomic_load_explicit(&s.watchdog.news, memory_order_acquire);
        atomic_fetch_add(&drained, empty_slots());
        lc_bell_wait(&s.watchdog.news, seen, lc_now_ns() + 5000000u);
    }
    return NULL;
}

static void stop_watchdog(void)
{
    lc_watchdog_ask_to_stop(&s.watchdog);
    CHECK(lc_life_stops_by(&s.watchdog.life, LC_NO_DEADLINE) && lc_life_is(&s.watchdog.life, LC_LIFE_OVER));
}

static void every_stall_is_taken_or_counted(lc_taker taker)
{
    pthread_t programs[THREADS], drain;
    stage_open(&s);
    lanes[0] = s.lane;
    for (uint64_t i = 1; i < THREADS; i++) {
        lanes[i] = stage_lane(&s, i);
    }
    LC_STORE(s.flight.header->takes, taker);
    empty_slots = taker == LC_TAKES_KEEPER ? take_ended_slots : free_ended_slots;
    atomic_store(&over, false);
    atomic_store(&drained, 0);
    CHECK(lc_watchdog_start(&s.watchdog) == 0);
    CHECK(pthread_create(&drain, NULL, drain_thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&programs[i], NULL, program_thread, lanes[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(programs[i], NULL);
    }
    stop_watchdog();
    atomic_store(&over, true);
    lc_bell_ring(&s.watchdog.news);
    pthread_join(drain, NULL);
    const uint64_t recorded = counted(&s, LC_COUNTER_stalls_recorded);
    CHECK(atomic_load(&drained) + empty_slots() == recorded);
    uint64_t stalls = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK(LC_LOAD(lanes[i]->turns) == ROUNDS && LC_LOAD(lanes[i]->callbacks) == ROUNDS);
        CHECK(LC_LOAD(lanes[i]->stalls) >= ROUNDS / STALL_EVERY); /* and those that the machine made */
        stalls += LC_LOAD(lanes[i]->stalls);
    }
    CHECK(recorded + counted(&s, LC_COUNTER_stalls_dropped_no_slot) +
              counted(&s, LC_COUNTER_stalls_dropped_ring_full) ==
          stalls);
}

static void wait_until_parked(void)
{
    while (!LC_ACQUIRE(s.flight.header->parked)) {
        sched_yield();
    }
}

/* If a wake-up were lost, the watchdog would not look again and this would not end. */
static void a_begin_wakes_a_parked_watchdog(void)
{
    const uint64_t delay = LC_LOAD(lanes[0]->sample_delay), threshold = LC_LOAD(lanes[0]->threshold);
    /* a turn that the machine holds up is no stall here: its end would ring a watchdog that parks */
    LC_STORE(lanes[0]->sample_delay, UINT64_MAX / 2u);
    LC_STORE(lanes[0]->threshold, UINT64_MAX / 2u);
    s.watchdog.settings.park_ns = 1000;
    s.watchdog.settings.tick_ns = 100000;
    CHECK(lc_watchdog_start(&s.watchdog) == 0);
    wait_until_parked();
    const unsigned descriptors = open_descriptors();
    CHECK(s.watchdog.host.is_open);
    for (int i = 0; i < 50; i++) {
        wait_until_parked();
        CHECK(open_descriptors() == descriptors);
        lc_turn_begin(stage_context(&s), lanes[0]);
        while (LC_ACQUIRE(s.flight.header->parked)) {
            sched_yield();
        }
        lc_turn_end(stage_context(&s), lanes[0]);
    }
    stop_watchdog();
    LC_STORE(lanes[0]->sample_delay, delay);
    LC_STORE(lanes[0]->threshold, threshold);
}

/* A callback that is sampled: on the watchdog's thread, `during` runs. */
static void stall_a_lane(void (*during)(void))
{
    s.source.during_walk = during;
    lc_turn_begin(stage_context(&s), lanes[0]);
    lc_callback_begin(lanes[0], 7, 0);
    age_callback(&s, 2u * THRESHOLD_MS);
    CHECK(lc_watchdog_start(&s.watchdog) == 0);
}

static void end_stall(void)
{
    lc_callback_end(stage_context(&s), lanes[0]);
    lc_turn_end(stage_context(&s), lanes[0]);
    stop_watchdog();
}

static int disk[2], noticed[2];
static _Thread_local volatile char of_a_library[200 * 1024];
static size_t room;
static sigset_t blocked;

static void tell(void) { CHECK(write(noticed[1], "", 1) == 1); }

static void wait_to_be_told(int fd)
{
    char byte;
    CHECK(read(fd, &byte, 1) == 1);
}

static void notice_thread(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    of_a_library[0] = 1;
    CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
    CHECK(pthread_attr_getstack(&attributes, &low, &bytes) == 0);
    pthread_attr_destroy(&attributes);
    room = (size_t)((char *)__builtin_frame_address(0) - (char *)low);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    s.source.during_walk = NULL;
    tell();
}

static void libraries_take_nothing_from_its_stack(void)
{
    stall_a_lane(notice_thread);
    wait_to_be_told(noticed[0]);
    CHECK(room > 200u * 1024u);
    end_stall();
}

static void only_its_own_faults_reach_it(void)
{
    CHECK(sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGUSR1) == 1);
    CHECK(sigismember(&blocked, SIGSEGV) == 0 && sigismember(&blocked, SIGBUS) == 0);
}

static void wait_for_disk(void)
{
    s.source.during_walk = NULL;
    tell();
    wait_to_be_told(disk[0]);
}

static void one_without_time_to_stop_goes_on(void)
{
    stall_a_lane(wait_for_disk);
    wait_to_be_told(noticed[0]);
    lc_watchdog_ask_to_stop(&s.watchdog);
    CHECK(!lc_life_stops_by(&s.watchdog.life, lc_now_ns()));
    CHECK(lc_watchdog_start(&s.watchdog) == 0 && lc_life_is(&s.watchdog.life, LC_LIFE_RUNS));
    CHECK(write(disk[1], "", 1) == 1);
    end_stall();
    CHECK(lc_watchdog_start(&s.watchdog) == 0);
    stop_watchdog();
}

static _Atomic int errands;
static bool no_thread_at_first(void)
{
    tell();
    return atomic_fetch_add(&errands, 1) > 0;
}

/* Seen by one that works, told again where it could not be run, and once more when it is time. */
static void errands_are_run(void)
{
    lc_keeper_page page;
    const char *why;
    s.watchdog.run_errand = no_thread_at_first;
    s.watchdog.settings.park_ns = LC_NO_DEADLINE;
    lc_turn_begin(stage_context(&s), lanes[0]);
    CHECK(lc_watchdog_start(&s.watchdog) == 0 && lc_keeper_page_open(&page, s.path, &why) == 0);
    CHECK(lc_keeper_page_errand(&page) == 0);
    wait_to_be_told(noticed[0]);
    wait_to_be_told(noticed[0]);
    atomic_store(&s.watchdog.errand_ns, lc_now_ns() + 1000000u);
    wait_to_be_told(noticed[0]);
    lc_turn_end(stage_context(&s), lanes[0]);
    stop_watchdog();
    CHECK(atomic_load(&errands) == 3 && atomic_load(&s.watchdog.errand_ns) == 0);
    lc_keeper_page_close(&page);
}

int main(void)
{
    CHECK(pipe(disk) == 0 && pipe(noticed) == 0);
    every_stall_is_taken_or_counted(LC_TAKES_KEEPER);
    stage_close(&s);
    every_stall_is_taken_or_counted(LC_TAKES_DRAIN);
    a_begin_wakes_a_parked_watchdog();
    libraries_take_nothing_from_its_stack();
    only_its_own_faults_reach_it();
    one_without_time_to_stop_goes_on();
    errands_are_run();
    stage_close(&s);
    return 0;
}
