/* Alternate stacks: a stack that has run over leaves a note, and the process ends as without us. */
#include "core/signals/disposition.h"

#include <sys/resource.h>

#include "core/host/process_facts.h"

#include "tests/core/signals/in_child.h"

/* The sanitizer's own would be there before ours. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "use_sigaltstack=0"; }

/* Deeper than any stack; the compiler may make no loop of it. */
static __attribute__((noinline)) int run_over(int depth)
{
    volatile char room[1024];
    room[0] = (char)depth;
    return depth < 0 ? 0 : run_over(depth + 1) + room[0];
}

static stack_t own_stack(void)
{
    stack_t now;
    CHECK(sigaltstack(NULL, &now) == 0);
    return now;
}

static bool has_stack(void) { return !(own_stack().ss_flags & SS_DISABLE); }

static void *runs_over(void *unused)
{
    (void)unused;
    return run_over(0) ? &shared : NULL;
}

/* What a call from this program's own object is led to. */
static void in_a_thread(void *(*does)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, does, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void begin_with_stacks(void)
{
    change(SIGSEGV, SIG_DFL, 0);
    begin(BIT(SIGSEGV));
    lc_fault_stacks_begin((const void *)(uintptr_t)in_a_thread);
}

static void begun_thread_runs_over(void)
{
    begin_with_stacks();
    (void)runs_over(NULL);
}

static void other_thread_runs_over(void)
{
    begin_with_stacks();
    in_a_thread(runs_over);
}

TEST(a_stack_that_has_run_over_is_noted)
{
    void (*const stories[])(void) = {begun_thread_runs_over, other_thread_runs_over};
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        const int status = in_a_child(stories[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        CHECK(shared->notes == 1 && shared->number == SIGSEGV && shared->ends);
    }
}

/* Memory that nobody may touch. */
static volatile char *forbidden(void) { return mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* What it needs itself does not fit at the end. */
static void faults_again(int number)
{
    volatile char room[40000];
    room[0] = (char)number;
    *forbidden() = room[0];
}

/* Its handler is the kernel's, as one that a library has set; an alarm ends it where it goes on for ever. */
static void handler_faults_again(void)
{
    const struct sigaction again = {.sa_handler = faults_again, .sa_flags = SA_ONSTACK | SA_NODEFER};
    begin_with_stacks();
    CHECK(sigaction(SIGSEGV, &again, NULL) == 0);
    (void)alarm(600);
    faults_again(0);
}

TEST(a_handler_that_faults_again_ends_the_process)
{
    const int status = in_a_child(handler_faults_again);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static char reporters[64 * 1024];

static void set_reporters(void)
{
    const stack_t theirs = {.ss_sp = reporters, .ss_size = sizeof reporters};
    CHECK(sigaltstack(&theirs, NULL) == 0);
}

static void *sets_its_own(void *unused)
{
    (void)unused;
    CHECK(has_stack() && own_stack().ss_sp != reporters);
    set_reporters();
    lc_fault_stack_give();
    CHECK(own_stack().ss_sp == reporters);
    return NULL;
}

static void has_a_crash_reporter(void)
{
    set_reporters();
    begin_with_stacks();
    CHECK(own_stack().ss_sp == reporters);
    in_a_thread(sets_its_own);
}

TEST(a_stack_of_the_programs_stays) { CHECK(in_a_child(has_a_crash_reporter) == WELL); }

enum { MARK = 77 };

static void *seen_stack;

static void *looks(void *unused)
{
    (void)unused;
    CHECK(has_stack());
    enum { TOP = 256 * 1024 }; /* below it, a guard */
    seen_stack = (char *)own_stack().ss_sp + own_stack().ss_size - TOP;
    memset(seen_stack, MARK, TOP);
    return NULL;
}

static void *exits(void *unused)
{
    (void)looks(unused);
    pthread_exit(NULL);
}

/* Nothing is mapped there, or what others have put there since. */
static bool is_gone(const void *stack)
{
    int ends[2];
    char found = 0;
    CHECK(pipe(ends) == 0);
    const bool is_gone = write(ends[1], stack, 1) != 1 || (read(ends[0], &found, 1) == 1 && found != MARK);
    close(ends[0]);
    close(ends[1]);
    return is_gone;
}

static void threads_end(void)
{
    void *(*const ways[])(void *) = {looks, exits};
    begin_with_stacks();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        in_a_thread(ways[i]);
        CHECK(is_gone(seen_stack));
    }
}

TEST(a_thread_gives_it_back_at_its_end) { CHECK(in_a_child(threads_end) == WELL); }

static pthread_barrier_t both;

static void *was_there_before(void *unused)
{
    (void)unused;
    (void)pthread_barrier_wait(&both);
    (void)pthread_barrier_wait(&both);
    CHECK(!has_stack());
    lc_fault_stack_give();
    CHECK(has_stack());
    return NULL;
}

static void *has_none(void *unused)
{
    (void)unused;
    lc_fault_stack_give();
    CHECK(!has_stack());
    return NULL;
}

static void others_come_here(void)
{
    pthread_t before;
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    CHECK(pthread_create(&before, NULL, was_there_before, NULL) == 0);
    (void)pthread_barrier_wait(&both);
    begin_with_stacks();
    (void)pthread_barrier_wait(&both);
    CHECK(pthread_join(before, NULL) == 0);
    lc_fault_stacks_end();
    in_a_thread(has_none);
    CHECK(has_stack()); /* others may have noted it */
}

TEST(a_thread_that_was_there_gets_one_when_it_comes) { CHECK(in_a_child(others_come_here) == WELL); }

#if !defined(__SANITIZE_THREAD__) /* it maps and unmaps terabytes meanwhile */
static void has_few_addresses(void)
{
    struct rlimit limit = {RLIM_INFINITY - 1, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur -= lc_spare_addresses();
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    begin_with_stacks();
    CHECK(!has_stack());
    in_a_thread(has_none);
}

TEST(the_programs_last_addresses_are_left_to_it) { CHECK(in_a_child(has_few_addresses) == WELL); }
#endif

int main(void) { return run_stories(); }
