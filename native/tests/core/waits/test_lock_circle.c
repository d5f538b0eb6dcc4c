/* Chains of waits: threads of this process that really sleep on a futex; who holds what, the test says. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"
#include "core/clock/clock.h"
#include "core/host/thread_view.h"
#include "core/lane/lane.h"
#include "core/waits/wait_view.h"
#include "tests/core/watchdog/scripted_source.h"

enum { THREADS = 3 };

static _Alignas(64) char slot_bytes[LC_SLOT_BYTES];
static lc_slot_writer writer;
static lc_lock_circle circle;
static lc_stack stack;
static _Atomic uint32_t words[THREADS];
static _Atomic uint64_t tids[THREADS];
static pthread_t threads[THREADS];
static bool gives_up[THREADS]; /* it sleeps with a timeout */

/* Thread i has the thread state 4096 * (i + 1); its lock is held by thread holders[i], -1 none. */
static int holders[THREADS];
static lc_lock_kind kinds[THREADS];
static lc_lock_proof proofs[THREADS];
static uint64_t gil_word;
static bool searched;
static unsigned questions;

static uint64_t state_of(int thread) { return 4096u * (uint64_t)(thread + 1); }

static void scripted_holder(lc_frame_source *self, const lc_lock_question *question, lc_lock_view *out)
{
    const int thread = (int)(question->thread_state / 4096u) - 1;
    (void)self;
    searched = question->search;
    questions++;
    *out = (lc_lock_view){.kind = LC_LOCK_NONE};
    if (question->futex != (uint64_t)(uintptr_t)&words[thread]) {
        return;
    }
    out->kind = kinds[thread];
    out->object = 64u * (uint64_t)(thread + 1);
    out->module = kinds[thread] == LC_LOCK_MODULE ? (lc_text){"json", 4} : (lc_text){NULL, 0};
    if (holders[thread] >= 0) {
        out->proof = proofs[thread];
        out->holder_thread_state = state_of(holders[thread]);
        out->holder_tid = (uint32_t)tids[holders[thread]];
        out->frame = 2;
    }
}

static void scripted_gil_word(lc_frame_source *self, uint64_t thread_state, lc_gil_view *out)
{
    (void)self;
    (void)thread_state;
    *out = (lc_gil_view){.wait_address_low = gil_word, .wait_address_high = gil_word + 4};
}

static lc_frame_source *source(void)
{
    static scripted_source scripted_one;
    scripted_one = scripted();
    scripted_one.source.lock = scripted_holder;
    scripted_one.source.gil = scripted_gil_word;
    return &scripted_one.source;
}

static void *sleep_on_its_word(void *argument)
{
    _Atomic uint32_t *word = argument;
    const struct timespec hour = {.tv_sec = 3600};
    const struct timespec *timeout = gives_up[word - words] ? &hour : NULL;
    tids[word - words] = (uint64_t)syscall(SYS_gettid);
    while (*word == 0) {
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, timeout, NULL, 0);
    }
    return NULL;
}

static void start(int thread)
{
    const uint64_t until = lc_now_ns() + HANG_NS;
    words[thread] = 0;
    tids[thread] = 0;
    CHECK(pthread_create(&threads[thread], NULL, sleep_on_its_word, &words[thread]) == 0);
    while (tids[thread] == 0 || lc_thread_call(tids[thread]).args[0] != (uint64_t)(uintptr_t)&words[thread]) {
        sched_yield();
        CHECK(lc_now_ns() < until);
    }
}

/* Lets it run: it wakes, and sleeps again. */
static void stir(int thread)
{
    uint64_t before = 0;
    uint64_t now = 0;
    const uint64_t until = lc_now_ns() + HANG_NS;
    CHECK(lc_thread_cpu_ns((uint32_t)tids[thread], &before));
    do {
        syscall(SYS_futex, &words[thread], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        CHECK(lc_thread_cpu_ns((uint32_t)tids[thread], &now) && lc_now_ns() < until);
    } while (now == before);
    while (lc_thread_call(tids[thread]).args[0] != (uint64_t)(uintptr_t)&words[thread]) {
        sched_yield();
        CHECK(lc_now_ns() < until);
    }
}

static void end(int thread)
{
    words[thread] = 1;
    syscall(SYS_futex, &words[thread], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    CHECK(pthread_join(threads[thread], NULL) == 0);
}

static void begin(int first, int second, int third)
{
    const int all[THREADS] = {first, second, third};
    memcpy(holders, all, sizeof all);
    memset(&circle, 0, sizeof circle);
    gil_word = 0;
    for (int i = 0; i < THREADS; i++) {
        kinds[i] = LC_LOCK_PLAIN;
        proofs[i] = LC_PROOF_WITH;
    }
    lc_slot_writer_begin(&writer, (lc_slot *)slot_bytes);
}

static bool followed(void) { return lc_lock_circle_follow(&circle, source(), state_of(0), tids[0], &writer); }

static const lc_wait_entry *entry_at(uint64_t offset) { return (const lc_wait_entry *)(slot_bytes + offset); }

TEST(a_circle_is_told_when_it_is_seen_twice)
{
    begin(1, 0, -1);
    CHECK(!followed());
    CHECK(followed());
    CHECK(followed() && circle.closed == 2);
}

TEST(its_threads_are_stored_in_order_and_once)
{
    begin(1, 2, 0);
    kinds[2] = LC_LOCK_MODULE;
    CHECK(!followed() && followed());
    lc_lock_circle_put(&circle, source(), &writer, &stack);
    const uint64_t last = LC_LOAD(writer.slot->circle);
    const uint64_t used = LC_LOAD(writer.slot->heap_used);
    CHECK(last != LC_NO_REF && entry_at(last)->tid == tids[2] && entry_at(last)->holder_tid == tids[0]);
    CHECK(entry_at(last)->lock_kind == LC_LOCK_MODULE && entry_at(last)->module.bytes == 4);
    const lc_wait_entry *middle = entry_at(entry_at(last)->before);
    CHECK(middle->tid == tids[1] && middle->holder_tid == tids[2] && middle->stack != LC_NO_REF);
    CHECK(middle->lock_kind == LC_LOCK_PLAIN && middle->lock_proof == LC_PROOF_WITH &&
          middle->lock_frame == 2);
    const lc_wait_entry *first = entry_at(middle->before);
    CHECK(first->tid == tids[0] && first->holder_tid == tids[1] && first->before == LC_NO_REF);
    CHECK(followed());
    lc_lock_circle_put(&circle, source(), &writer, &stack);
    CHECK(LC_LOAD(writer.slot->circle) == last && LC_LOAD(writer.slot->heap_used) == used);
}

TEST(a_wait_with_a_timeout_is_stored_as_one)
{
    end(1);
    gives_up[1] = true;
    start(1);
    begin(1, 0, -1);
    CHECK(!followed() && followed());
    lc_lock_circle_put(&circle, source(), &writer, &stack);
    const lc_wait_entry *last = entry_at(LC_LOAD(writer.slot->circle));
    CHECK(last->tid == tids[1] && last->has_timeout && !entry_at(last->before)->has_timeout);
    end(1);
    gives_up[1] = false;
    start(1);
}

TEST(a_circle_that_the_thread_only_waits_for_is_told_too)
{
    begin(1, 2, 1);
    CHECK(!followed() && followed() && circle.closed == 3);
    begin(1, 1, -1); /* a lock that its holder wants once more */
    CHECK(!followed() && followed() && circle.closed == 2);
}

TEST(a_chain_that_ends_is_none)
{
    begin(1, 2, -1);
    CHECK(!followed() && !followed() && circle.closed == 0);
    begin(1, 2, 0);
    holders[2] = -1;
    CHECK(!followed());
    holders[2] = 0; /* it has closed: seen for the first time */
    CHECK(!followed());
    CHECK(followed());
}

TEST(threads_that_do_not_run_are_not_asked_again)
{
    begin(1, 0, -1);
    CHECK(!followed() && followed());
    questions = 0;
    CHECK(followed() && questions == 0);
    stir(1);
    CHECK(followed() && questions == 2);
}

TEST(another_circle_is_another_one)
{
    begin(1, 0, 0);
    CHECK(!followed() && followed());
    /* it went from one thread to another: the first one ran, the thread that waits slept on */
    holders[0] = 2;
    stir(1);
    CHECK(!followed());
    CHECK(followed() && !circle.stored);
}

TEST(a_thread_that_has_what_it_waited_for_is_in_none)
{
    begin(1, 0, -1);
    CHECK(!followed() && followed());
    end(1);
    CHECK(!followed() && !followed());
    start(1);
}

TEST(a_thread_on_its_way_to_the_gil_is_in_none)
{
    begin(1, 0, -1);
    gil_word = (uint64_t)(uintptr_t)&words[1];
    CHECK(!followed() && !followed());
}

TEST(no_thread_waits_for_an_rlock_of_its_own)
{
    begin(1, 1, -1);
    kinds[1] = LC_LOCK_RECURSIVE;
    CHECK(!followed() && !followed());
    begin(1, 1, -1);
    kinds[1] = LC_LOCK_SHARED_RECURSIVE;
    CHECK(!followed() && !followed());
}

TEST(a_lock_of_processes_is_in_a_circle)
{
    begin(1, 0, -1);
    kinds[0] = kinds[1] = LC_LOCK_SHARED;
    CHECK(!followed() && followed());
    begin(1, 0, -1);
    kinds[0] = LC_LOCK_SHARED_RECURSIVE;
    proofs[0] = LC_PROOF_OWNER;
    CHECK(!followed() && followed());
}

TEST(all_threads_are_searched_ever_more_rarely)
{
    static const bool due[] = {true, true, true, false, true, false, false, false, true};
    begin(1, -1, -1);
    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++) {
        searched = false;
        (void)followed();
        CHECK(searched == due[i]);
    }
}

int main(void)
{
    for (int i = 0; i < THREADS; i++) {
        start(i);
    }
    run_tests();
    for (int i = 0; i < THREADS; i++) {
        end(i);
    }
    return 0;
}
