/* What a sample keeps of a wait, and what is asked again; of threads of this process that really wait. */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/check.h"
#include "core/clock/clock.h"
#include "core/lane/lane.h"
#include "tests/core/watchdog/scripted_source.h"
#include "core/waits/wait_view.h"

static lc_memory_reader reader;
static _Alignas(64) char slot_bytes[LC_SLOT_BYTES];
static lc_slot_writer writer;
static scripted_source source;
static lc_wait_memory memory;
static lc_thread_view view;
static _Atomic uint32_t word;
static int ends[2];
static _Atomic uint64_t waiting_tid;

static void *wait_for_a_byte(void *argument)
{
    char byte;
    waiting_tid = (uint64_t)syscall(SYS_gettid);
    CHECK(read(ends[0], &byte, 1) == 1);
    return argument;
}

static void *wait_for_the_word(void *argument)
{
    waiting_tid = (uint64_t)syscall(SYS_gettid);
    while (word == 0) {
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    return argument;
}

static lc_thread_reading reading_in(int64_t call)
{
    lc_thread_reading reading;
    const uint64_t until = lc_now_ns() + HANG_NS;
    do { /* until the thread is where it goes */
        sched_yield();
        lc_thread_view_read(&view, 0, false, &reading);
        CHECK(lc_now_ns() < until);
    } while (reading.syscall.number != call);
    return reading;
}

static pthread_t started(void *(*wait)(void *))
{
    pthread_t thread;
    waiting_tid = 0;
    CHECK(pthread_create(&thread, NULL, wait, NULL) == 0);
    while (waiting_tid == 0) {
        sched_yield();
    }
    lc_thread_view_open(&view, waiting_tid);
    return thread;
}

static void begin_slot(uint64_t serial)
{
    lc_slot_writer_begin(&writer, (lc_slot *)slot_bytes);
    LC_STORE(writer.slot->serial, serial);
}

static lc_sample_entry sampled(const lc_thread_reading *reading, uint64_t *holder)
{
    lc_sample_entry sample = {.holder_tid = 99};
    *holder = lc_wait_view_put(&memory, &reader, &source.source, &view, reading, 4096, &writer, &sample);
    return sample;
}

static bool named(const lc_sample_entry *sample, const char *text)
{
    return sample->target.bytes == strlen(text) &&
           memcmp(slot_bytes + sample->target.offset, text, sample->target.bytes) == 0;
}

TEST(a_target_is_asked_for_once_a_wait)
{
    uint64_t holder;
    char link[64] = "";
    CHECK(pipe(ends) == 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    CHECK(readlink(path, link, sizeof link - 1) > 0);
    const pthread_t thread = started(wait_for_a_byte);
    lc_thread_reading reading = reading_in(SYS_read);
    begin_slot(1);
    lc_sample_entry sample = sampled(&reading, &holder);
    CHECK(sample.target_kind == LC_TARGET_PIPE && named(&sample, link) && holder == 0);
    const int reader_end = dup(ends[0]);
    const int null = open("/dev/null", O_RDONLY);
    CHECK(dup2(null, ends[0]) == ends[0]); /* it sleeps in the pipe still */
    sample = sampled(&reading, &holder);
    CHECK(sample.target_kind == LC_TARGET_PIPE && named(&sample, link));
    begin_slot(2); /* another stall: the references were of the last one's heap */
    sample = sampled(&reading, &holder);
    CHECK(sample.target_kind == LC_TARGET_FILE && named(&sample, "/dev/null"));
    CHECK(dup2(reader_end, ends[0]) == ends[0]);
    reading.sched.on_cpu_ns++; /* it has run: it may be another wait */
    sample = sampled(&reading, &holder);
    CHECK(sample.target_kind == LC_TARGET_PIPE && named(&sample, link));
    reading.syscall.args[2]++; /* a call that it is not in: what was known is not kept */
    sample = sampled(&reading, &holder);
    CHECK(sample.target_kind == LC_TARGET_NONE && sample.target.bytes == 0);
    CHECK(write(ends[1], "x", 1) == 1 && pthread_join(thread, NULL) == 0);
    lc_thread_view_close(&view);
    close(reader_end);
    close(null);
    close(ends[0]);
    close(ends[1]);
}

TEST(all_threads_are_searched_for_a_holder_ever_more_rarely)
{
    static const bool due[] = {true, true, true, false, true, false, false, false, true, false};
    uint64_t holder;
    const pthread_t thread = started(wait_for_the_word);
    const lc_thread_reading reading = reading_in(SYS_futex);
    begin_slot(3);
    source.lock = (lc_lock_view){.kind = LC_LOCK_PLAIN};
    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++) {
        const lc_sample_entry sample = sampled(&reading, &holder);
        CHECK(source.question.search == due[i] && source.question.known_holder == 0);
        CHECK(source.question.futex == (uint64_t)(uintptr_t)&word && source.question.thread_state == 4096);
        CHECK(sample.lock_kind == LC_LOCK_PLAIN && sample.lock_proof == LC_PROOF_NONE);
        CHECK(sample.holder_tid == 0 && holder == 0); /* not who holds the GIL */
    }
    source.lock = (lc_lock_view){.kind = LC_LOCK_MODULE,
                                 .proof = LC_PROOF_WITH,
                                 .holder_thread_state = 8192,
                                 .holder_tid = 7,
                                 .frame = 3,
                                 .module = {"json", 4}};
    lc_sample_entry sample = sampled(&reading, &holder);
    CHECK(sample.lock_kind == LC_LOCK_MODULE && sample.lock_proof == LC_PROOF_WITH && named(&sample, "json"));
    CHECK(sample.target_kind == LC_TARGET_NONE && sample.holder_tid == 7 && holder == 8192);
    CHECK(sample.lock_frame == 3);
    sample = sampled(&reading, &holder);
    CHECK(source.question.known_holder == 8192);
    source.lock = (lc_lock_view){.kind = LC_LOCK_NONE};
    sample = sampled(&reading, &holder);
    CHECK(sample.lock_kind == LC_LOCK_NONE && sample.holder_tid == 99 && holder == 0);
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    CHECK(pthread_join(thread, NULL) == 0);
    lc_thread_view_close(&view);
}

TEST(others_that_wait_for_the_same_lock_are_kept)
{
    uint64_t holder;
    word = 0;
    const pthread_t other = started(wait_for_the_word);
    const uint64_t other_tid = waiting_tid;
    (void)reading_in(SYS_futex);
    lc_thread_view_close(&view);
    const pthread_t thread = started(wait_for_the_word);
    const lc_thread_reading reading = reading_in(SYS_futex);
    source.other_tid = other_tid;
    source.lock = (lc_lock_view){.kind = LC_LOCK_PLAIN};
    begin_slot(4);
    (void)sampled(&reading, &holder);
    CHECK(LC_LOAD(writer.slot->waiter_count) == 0); /* it is not known which lock it is */
    source.lock.object = 77;
    (void)sampled(&reading, &holder);
    CHECK(LC_LOAD(writer.slot->waiter_count) == 1 && LC_LOAD(writer.slot->waiters[0]) == other_tid);
    source.other_tid = (uint64_t)syscall(SYS_gettid); /* this thread waits for nothing: what was seen stays */
    (void)sampled(&reading, &holder);
    CHECK(LC_LOAD(writer.slot->waiter_count) == 1 && LC_LOAD(writer.slot->waiters[0]) == other_tid);
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0);
    CHECK(pthread_join(thread, NULL) == 0 && pthread_join(other, NULL) == 0);
    lc_thread_view_close(&view);
    source.other_tid = 0;
}

TEST(a_thread_that_runs_costs_nothing)
{
    uint64_t holder;
    const unsigned before = source.questions;
    const int64_t calls[] = {LC_SYSCALL_RUNNING, LC_SYSCALL_UNKNOWN, SYS_clock_nanosleep};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const lc_thread_reading reading = {.syscall.number = calls[i], .sched.on_cpu_ns = 1};
        const lc_sample_entry sample = sampled(&reading, &holder);
        CHECK(sample.target_kind == LC_TARGET_NONE && sample.lock_kind == LC_LOCK_NONE && holder == 0);
    }
    CHECK(source.questions == before);
}

int main(void)
{
    source = scripted();
    CHECK(lc_memory_reader_open(&reader, getpid()) != LC_READER_NONE);
    run_tests();
    lc_memory_reader_close(&reader);
    return 0;
}
