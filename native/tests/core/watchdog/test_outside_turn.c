/* A program that does not start or end: the looks are taken on a thread that names itself as ours do, at the times
 * that a story says, while the process's main thread waits as the story wants. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "core/host/thread_view.h"
#include "core/watchdog/watch_state.h"
#include "tests/core/lane/bench_lane.h"

#define SECOND UINT64_C(1000000000)
#define EXECUTOR_ENDS UINT64_C(8) /* thread state of the second one that the source lists */

static stage s;
static lc_bell over, other_over;
static const char *file, *function; /* of the main thread's one frame */
static bool has_executor;           /* that another thread waits for */
static void (*story)(void);
static uint64_t now_ns;
static unsigned threads; /* that there are to be */

static lc_walk_result walk(lc_frame_source *self, uint64_t thread_state, lc_stack *out)
{
    scripted_source *source = (scripted_source *)self;
    const lc_walk_result result = scripted_walk(self, thread_state, out);
    const bool is_main = thread_state != EXECUTOR_ENDS || !has_executor;
    const char *in_file = is_main ? file : "concurrent/futures/thread.py";
    const char *in_function = is_main ? function : "ThreadPoolExecutor.shutdown";
    source->code.filename = (lc_text){in_file, (uint32_t)strlen(in_file)};
    source->code.qualname = (lc_text){in_function, (uint32_t)strlen(in_function)};
    return result;
}

static void begin(const char *in_file, const char *in_function)
{
    stage_open(&s);
    s.source.source.walk = walk;
    s.source.other_tid = 1;
    s.watchdog.settings.boot_ns = 10 * SECOND;
    s.watchdog.settings.exit_ns = s.watchdog.settings.anr_ns = 5 * SECOND;
    s.watchdog.settings.hang_ns = SECOND;
    strcpy(s.lane->loop_kind, "asyncio");
    file = in_file;
    function = in_function;
    now_ns = SECOND;
    over = other_over = 0;
    threads = 2;
    has_executor = false;
}

/* After so many seconds, with a look at each; the first one is at 0. */
static uint64_t look_for(int seconds)
{
    uint64_t next = lc_outside_look(&s.watchdog, now_ns, true);
    for (int i = 0; i < seconds; i++) {
        now_ns += SECOND;
        next = lc_outside_look(&s.watchdog, now_ns, true);
    }
    return next;
}

static const lc_slot *hang(lc_ended_kind kind)
{
    const lc_slot *found = slot(&s, 0);
    return found != NULL && LC_LOAD(found->state) == LC_SLOT_STALL && LC_LOAD(found->kind) == kind ? found
                                                                                                   : NULL;
}

/* Those of the story are there, and all but this one sleep: one that has just begun may not have been run yet, and one
 * that was joined may be listed for a moment. */
static bool is_set(int64_t mains_call)
{
    const uint64_t own = (uint64_t)syscall(SYS_gettid);
    lc_thread_list list;
    unsigned count = 0, asleep = 0;
    lc_thread_list_read(&list);
    for (uint64_t tid; (tid = lc_thread_list_next(&list)) != 0; count++) {
        const int64_t call = lc_thread_call(tid).number;
        asleep += tid != own && call == (tid == (uint64_t)getpid() ? mains_call : SYS_futex);
    }
    return count == threads && asleep == threads - 1u;
}

static void *on_our_thread(void *number)
{
    prctl(PR_SET_NAME, "loopcanary", 0, 0, 0);
    while (!is_set(*(const int64_t *)number)) {
        sched_yield();
    }
    story();
    lc_bell_ring(&over);
    return NULL;
}

static void tell(void (*what)(void), int64_t call, void (*wait)(void))
{
    pthread_t ours;
    story = what;
    CHECK(pthread_create(&ours, NULL, on_our_thread, &call) == 0);
    wait();
    pthread_join(ours, NULL);
    stage_close(&s);
}

static void wait_for_lock(void)
{
    while (atomic_load(&over) == 0) {
        lc_bell_wait(&over, 0, LC_NO_DEADLINE);
    }
}

/* ---- no end ------------------------------------------------------------------------------------------ */

static void ends_in_vain(void)
{
    const uint64_t start = now_ns;
    CHECK(look_for(0) == start + SECOND);
    look_for(4);
    CHECK(hang(LC_ENDED_EXIT) == NULL);
    look_for(1);
    const lc_slot *found = hang(LC_ENDED_EXIT);
    CHECK(found != NULL && LC_LOAD(found->begin_ns) == start && LC_LOAD(found->end_ns) == 0);
    CHECK(LC_LOAD(found->sample_count) == 1 && LC_LOAD(found->level) == LC_LEVEL_ANR);
    CHECK(LC_LOAD(found->thread_count) == 2 && s.watchdog.watches[LC_WATCH_OUTSIDE].word_ns == 0);
    CHECK(counted(&s, LC_COUNTER_stalls_recorded) == 0);
    file = "app.py"; /* it goes on */
    CHECK(look_for(1) == LC_NO_DEADLINE);
    CHECK(LC_LOAD(found->state) == LC_SLOT_ENDED && LC_LOAD(found->end_ns) == now_ns);
}

TEST(a_program_whose_threads_wait_for_each_other_does_not_end)
{
    begin("/lib/threading.py", "_shutdown");
    tell(ends_in_vain, SYS_futex, wait_for_lock);
}

static void is_silent(void)
{
    look_for(12);
    CHECK(slot(&s, 0) == NULL || LC_LOAD(slot(&s, 0)->state) == LC_SLOT_FREE);
}

static void is_not_looked_at(void)
{
    CHECK(look_for(12) == LC_NO_DEADLINE);
    is_silent();
}

TEST(a_program_that_is_in_no_exit_place_is_not_looked_at)
{
    begin("app.py", "_shutdown");
    tell(is_not_looked_at, SYS_futex, wait_for_lock);
}

TEST(a_program_without_a_loop_may_wait_at_its_end)
{
    begin("/lib/threading.py", "_shutdown");
    strcpy(s.lane->loop_kind, "thread");
    tell(is_not_looked_at, SYS_futex, wait_for_lock);
}

static void handle(int number) { (void)number; }

static void with_a_handler_of(int number)
{
    begin("/lib/threading.py", "_shutdown");
    signal(number, handle);
    tell(is_silent, SYS_futex, wait_for_lock);
    signal(number, SIG_DFL);
}

TEST(a_handler_may_end_what_is_waited_for)
{
    with_a_handler_of(SIGUSR1);
    with_a_handler_of(SIGRTMIN + 1);
}

TEST(a_handler_of_interrupts_may_end_it_too_as_python_says)
{
    begin("/lib/threading.py", "_shutdown");
    atomic_store(&s.watchdog.outside.exit, LC_EXIT_BEGUN | LC_EXIT_INTERRUPTIBLE);
    tell(is_silent, SYS_futex, wait_for_lock);
}

static void *sleep_long(void *unused)
{
    (void)unused;
    while (atomic_load(&other_over) == 0) {
        lc_bell_wait(&other_over, 0, lc_now_ns() + 3600 * SECOND);
    }
    return NULL;
}

static void with_a_thread_that_sleeps(void (*what)(void), uint32_t told)
{
    pthread_t other;
    begin("/lib/threading.py", "_shutdown");
    atomic_store(&s.watchdog.outside.exit, told);
    CHECK(pthread_create(&other, NULL, sleep_long, NULL) == 0);
    threads = 3;
    tell(what, SYS_futex, wait_for_lock);
    lc_bell_ring(&other_over);
    pthread_join(other, NULL);
}

TEST(a_wait_with_a_timeout_ends_by_itself) { with_a_thread_that_sleeps(is_silent, LC_EXIT_BEGUN); }

static void is_told(void)
{
    look_for(5);
    CHECK(hang(LC_ENDED_EXIT) != NULL);
}

TEST(after_an_interrupt_any_wait_is_told)
{
    with_a_thread_that_sleeps(is_told, LC_EXIT_BEGUN | LC_EXIT_INTERRUPTED);
}

TEST(asyncio_that_ends_waits_for_an_executor_or_is_silent)
{
    begin("asyncio/runners.py", "Runner.close");
    tell(is_silent, SYS_futex, wait_for_lock);
}

static int wake[2];
static int patience_ms;

static void poll_and_wait(void)
{
    struct pollfd asked = {.fd = wake[0], .events = POLLIN};
    int ready;
    while ((ready = poll(&asked, 1, patience_ms)) == 0) {
    }
    CHECK(ready == 1);
}

static void then_let_go(void (*what)(void))
{
    what();
    CHECK(write(wake[1], "x", 1) == 1);
}

static void is_told_and_let_go(void) { then_let_go(is_told); }

static void is_silent_and_let_go(void) { then_let_go(is_silent); }

static void with_a_loop_that_polls(int timeout_ms, void (*what)(void))
{
    begin("asyncio/runners.py", "Runner.close");
    has_executor = true;
    patience_ms = timeout_ms;
    CHECK(pipe(wake) == 0);
    tell(what, SYS_poll, poll_and_wait);
    close(wake[0]);
    close(wake[1]);
}

#ifdef SYS_poll
TEST(asyncio_that_ends_waits_for_its_executor) { with_a_loop_that_polls(-1, is_told_and_let_go); }

TEST(a_timer_of_the_loop_may_let_a_thread_go_on) { with_a_loop_that_polls(60 * 1000, is_silent_and_let_go); }
#endif

/* ---- no start ---------------------------------------------------------------------------------------- */

static int connection[2];

static void open_connection(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    connection[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(server, (struct sockaddr *)&address, sizeof address) == 0 && listen(server, 1) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&address, &bytes) == 0);
    CHECK(connect(connection[0], (struct sockaddr *)&address, sizeof address) == 0);
    connection[1] = accept(server, NULL, NULL);
    close(server);
}

static void wait_for_bytes(void)
{
    char byte;
    CHECK(recv(connection[0], &byte, 1, 0) == 1);
    close(connection[0]);
    close(connection[1]);
}

static void begin_start(const char *in_file)
{
    begin(in_file, "_find_and_load");
    LC_STORE(s.lane->state, LC_LANE_FREE);
    open_connection();
}

static void let_go_on(void) { CHECK(send(connection[1], "x", 1, 0) == 1); }

static void starts_in_vain(void)
{
    look_for(9);
    CHECK(hang(LC_ENDED_BOOT) == NULL);
    look_for(1);
    CHECK(hang(LC_ENDED_BOOT) != NULL);
    let_go_on();
}

TEST(an_import_that_waits_for_a_peer_does_not_start)
{
    begin_start("<frozen importlib._bootstrap>");
    tell(starts_in_vain, SYS_recvfrom, wait_for_bytes);
}

static void has_started(void)
{
    CHECK(look_for(12) == LC_NO_DEADLINE);
    is_silent();
    let_go_on();
}

TEST(a_program_that_imports_nothing_has_started)
{
    begin_start("app.py");
    tell(has_started, SYS_recvfrom, wait_for_bytes);
}

static void wait_for_pipe(void)
{
    char byte;
    CHECK(read(connection[0], &byte, 1) == 1);
}

static void may_be_given_something(void)
{
    is_silent();
    CHECK(write(connection[1], "x", 1) == 1);
}

TEST(an_import_that_reads_a_pipe_may_start_at_any_time)
{
    begin_start("<frozen importlib._bootstrap>");
    CHECK(pipe(connection) == 0);
    tell(may_be_given_something, SYS_read, wait_for_pipe);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    return 0; /* it has a thread of its own, which sleeps */
#else
    return run_tests();
#endif
}
