/* What a sample has of other threads: who holds the GIL, and what it is called. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "tests/core/lane/still_stage.h"
#include "core/host/thread_view.h"

static stage s;

static void begin_work(void)
{
    lc_turn_begin(stage_context(&s), s.lane);
    lc_callback_begin(s.lane, 7, 0);
    age_callback(&s, 50);
    look(&s);
}

static void end_work(void)
{
    lc_callback_end(stage_context(&s), s.lane);
    lc_turn_end(stage_context(&s), s.lane);
    look(&s);
}

TEST(a_thread_whose_calls_cannot_be_read_is_counted_once)
{
    struct rlimit all;
    CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
    const struct rlimit none = {3, all.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int i = 0; i < 3; i++) {
        begin_work();
        end_work();
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
    CHECK(counted(&s, LC_COUNTER_calls_no_descriptor) == 1);
    CHECK(counted(&s, LC_COUNTER_calls_refused) == 0);
}

enum { HOLDER = 4096 };

static void another_holds_the_gil(lc_frame_source *self, uint64_t thread_state, lc_gil_view *out)
{
    (void)self;
    (void)thread_state;
    *out = (lc_gil_view){.state = LC_GIL_HELD_BY_OTHER, .holder_thread_state = HOLDER, .holder_tid = 2};
}

/* As a source with little room: each walk writes over the code that the one before it named. */
static lc_walk_result one_code_at_a_time(lc_frame_source *self, uint64_t thread_state, lc_stack *out)
{
    static lc_code_facts code;
    (void)self;
    code = thread_state == HOLDER ? (lc_code_facts){2, {"b.py", 4}, {"holder", 6}, 10, 0}
                                  : (lc_code_facts){1, {"a.py", 4}, {"waiting", 7}, 10, 0};
    *out = (lc_stack){.count = 1, .hash = 100u * code.serial, .frames = {{&code, 10, 10, 1, 5}}};
    return LC_WALK_OK;
}

static bool is_called(lc_slot *it, uint32_t stack, const char *name)
{
    const lc_frame_entry *frame = (const void *)((char *)it + stack + sizeof(lc_stack_entry));
    const lc_code_entry *code = (const void *)((char *)it + frame->code);
    return stack != LC_NO_REF && code->qualname.bytes == strlen(name) &&
           memcmp((char *)it + code->qualname.offset, name, strlen(name)) == 0;
}

TEST(a_holder_s_stack_does_not_write_over_the_waiter_s)
{
    const lc_frame_source before = s.source.source;
    s.source.source.walk = one_code_at_a_time;
    s.source.source.gil = another_holds_the_gil;
    LC_STORE(s.lane->tid, INT32_MAX); /* the kernel does not know it: then the holder is always read */
    begin_work();
    lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->sample_count) == 1);
    CHECK(is_called(it, it->samples[0].stack, "waiting") &&
          is_called(it, it->samples[0].holder_stack, "holder"));
    end_work();
    LC_STORE(s.lane->tid, (uint64_t)syscall(SYS_gettid));
    s.source.source = before;
}

TEST(a_holder_is_named_once_and_while_it_holds)
{
    const lc_frame_source before = s.source.source;
    s.source.source.gil = another_holds_the_gil;
    LC_STORE(s.lane->tid, INT32_MAX);
    begin_work();
    s.watchdog.watches[0].next_sample_ns = 0;
    look(&s);
    lc_slot *it = slot(&s, 0);
    const lc_thread_name_entry *entry = (const void *)((char *)it + LC_LOAD(it->thread_names));
    CHECK(LC_LOAD(it->sample_count) == 2 && LC_LOAD(it->thread_names) != LC_NO_REF);
    CHECK(entry->tid == 2 && entry->before == LC_NO_REF);
    CHECK(entry->name.bytes == 6 && memcmp((char *)it + entry->name.offset, "worker", 6) == 0);
    end_work();
    LC_STORE(s.lane->tid, (uint64_t)syscall(SYS_gettid));
    s.source.source = before;
}

static _Atomic uint32_t gil_word;
static _Atomic uint64_t waiting_tid;

static void *wait_for_the_gil(void *argument)
{
    waiting_tid = (uint64_t)syscall(SYS_gettid);
    while (gil_word == 0) {
        syscall(SYS_futex, &gil_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    return argument;
}

static void no_thread_has_the_gil(lc_frame_source *self, uint64_t thread_state, lc_gil_view *out)
{
    (void)self;
    (void)thread_state;
    const uint64_t low = (uint64_t)(uintptr_t)&gil_word;
    *out = (lc_gil_view){.state = LC_GIL_FREE, .wait_address_low = low, .wait_address_high = low + 4u};
}

TEST(a_sleep_on_the_gil_is_a_wait_between_holders_too)
{
    const lc_frame_source before = s.source.source;
    pthread_t thread;
    s.source.source.gil = no_thread_has_the_gil;
    CHECK(pthread_create(&thread, NULL, wait_for_the_gil, NULL) == 0);
    while (waiting_tid == 0 || lc_thread_call(waiting_tid).number != SYS_futex) {
        sched_yield();
    }
    LC_STORE(s.lane->tid, waiting_tid);
    LC_STORE(s.lane->scene, 8);
    begin_work();
    lc_slot *it = slot(&s, 0);
    CHECK(LC_LOAD(it->sample_count) == 1 && it->samples[0].syscall == SYS_futex);
    CHECK(it->samples[0].flags & LC_SAMPLE_WAITS_FOR_GIL);
    const uint64_t scenes[] = {8, 9}, bytes[] = {5, 8}; /* it may still be on its way to a route */
    for (unsigned i = 0; i < 2; i++) {
        LC_STORE(s.lane->scene, scenes[i]);
        s.watchdog.watches[0].next_sample_ns = 0;
        look(&s);
        CHECK(LC_LOAD(it->sample_count) == 2u + i && it->scene.bytes == bytes[i]);
    }
    LC_STORE(s.lane->scene, 0);
    gil_word = 1;
    syscall(SYS_futex, &gil_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    pthread_join(thread, NULL);
    end_work();
    LC_STORE(s.lane->tid, (uint64_t)syscall(SYS_gettid));
    s.source.source = before;
}

int main(void)
{
    stage_open_still(&s);
    run_tests();
    stage_close(&s);
    return 0;
}
