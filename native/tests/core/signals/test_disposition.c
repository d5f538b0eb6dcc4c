/* What the program has for a signal is what it gets, whatever is noted of it. */
#include "tests/core/signals/in_child.h"

#include <errno.h>
#include <stdlib.h>

enum { SIGNALS_SENT = 10000 };

static stack_t own_stack;
static _Atomic int was_on_own_stack, was_blocked;

static void called_with_all(int number, siginfo_t *info, void *context)
{
    sigset_t mask;
    const char here = 0;
    const uintptr_t at = (uintptr_t)&here, begin = (uintptr_t)own_stack.ss_sp;
    was_on_own_stack = at >= begin && at < begin + own_stack.ss_size;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    was_blocked = sigismember(&mask, SIGUSR2) == 1;
    shared->calls += number == SIGTERM && info->si_pid == getpid() && context != NULL;
}

static void ends_by_default(void)
{
    begin(BIT(SIGTERM));
    kill(getpid(), SIGTERM);
}

static void aborts(void)
{
    begin(BIT(SIGABRT));
    abort();
}

TEST(the_default_action_ends_the_process_by_the_same_signal)
{
    int status = in_a_child(ends_by_default);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK(shared->notes == 1 && shared->number == SIGTERM && shared->code == SI_USER && shared->ends);
    status = in_a_child(aborts);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(shared->notes == 1 && shared->code == SI_TKILL);
}

static void ignores(void)
{
    struct sigaction now;
    signal(SIGTERM, SIG_IGN);
    begin(BIT(SIGTERM));
    raise(SIGTERM);
    CHECK(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
    change(SIGTERM, called, 0);
    raise(SIGTERM);
    change(SIGTERM, SIG_IGN, 0);
    raise(SIGTERM);
    CHECK(programs(SIGTERM).sa_handler == SIG_IGN);
}

TEST(what_is_ignored_is_ignored)
{
    CHECK(in_a_child(ignores) == WELL && shared->calls == 1 && shared->notes == 1 && !shared->ends);
}

static void has_a_handler_with_all(void)
{
    struct sigaction action = {.sa_sigaction = called_with_all, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    own_stack = (stack_t){.ss_size = 1 << 16};
    own_stack.ss_sp = malloc(own_stack.ss_size);
    sigaltstack(&own_stack, NULL);
    sigaddset(&action.sa_mask, SIGUSR2);
    begin(BIT(SIGTERM));
    CHECK(lc_disposition_change(SIGTERM, &action, NULL) == 0);
    raise(SIGTERM);
    CHECK(was_on_own_stack && was_blocked);
    action.sa_flags = SA_SIGINFO;
    CHECK(lc_disposition_change(SIGTERM, &action, NULL) == 0);
    raise(SIGTERM);
    CHECK(!was_on_own_stack && was_blocked);
}

TEST(a_handler_has_its_siginfo_mask_and_stack)
{
    CHECK(in_a_child(has_a_handler_with_all) == WELL && shared->calls == 2 && shared->notes == 2);
}

static void asks_what_there_is(void)
{
    struct sigaction before, plain, now;
    signal(SIGTERM, called);
    CHECK(sigaction(SIGTERM, NULL, &plain) == 0);
    begin(BIT(SIGTERM));
    now = programs(SIGTERM);
    CHECK(now.sa_handler == called && now.sa_flags == plain.sa_flags);
    CHECK(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler != called);
    const struct sigaction other = {.sa_handler = SIG_DFL, .sa_flags = SA_NODEFER};
    CHECK(lc_disposition_change(SIGTERM, &other, &before) == 0 && before.sa_handler == called);
    CHECK(programs(SIGTERM).sa_handler == SIG_DFL && (programs(SIGTERM).sa_flags & SA_NODEFER));
    CHECK(lc_disposition_change(SIGTERM, &before, NULL) == 0);
    raise(SIGTERM);
    lc_dispositions_end();
    CHECK(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == called && now.sa_flags == plain.sa_flags);
    raise(SIGTERM);
    CHECK(lc_disposition_change(SIGKILL, &other, NULL) == -1 && errno == EINVAL);
    CHECK(lc_disposition_change(1000, NULL, &now) == -1 && errno == EINVAL);
}

TEST(the_program_finds_what_it_has_set_and_gets_it_back)
{
    CHECK(in_a_child(asks_what_there_is) == WELL && shared->calls == 2 && shared->notes == 1);
}

static void is_called_once(void)
{
    begin(BIT(SIGTERM));
    change(SIGTERM, called, (int)SA_RESETHAND);
    raise(SIGTERM);
    CHECK(programs(SIGTERM).sa_handler == SIG_DFL);
    raise(SIGTERM);
}

TEST(a_handler_for_one_signal_is_called_for_one)
{
    const int status = in_a_child(is_called_once);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM && shared->calls == 1);
}

static void has_it_replaced_by_another(void)
{
    begin(BIT(SIGTERM));
    signal(SIGTERM, called); /* a library in C, whose calls do not come here */
    raise(SIGTERM);
    CHECK(programs(SIGTERM).sa_handler == called);
    change(SIGTERM, called, 0);
    raise(SIGTERM);
    lc_dispositions_end();
}

TEST(a_handler_that_another_library_sets_stays)
{
    CHECK(in_a_child(has_it_replaced_by_another) == WELL && shared->calls == 2 && shared->notes == 1);
}

static void has_children(void)
{
    int status;
    begin(BIT(SIGTERM));
    change(SIGTERM, called, 0);
    const pid_t child = fork();
    if (child == 0) {
        lc_dispositions_leave();
        raise(SIGTERM);
        change(SIGTERM, SIG_DFL, 0);
        raise(SIGTERM);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
    CHECK(shared->calls == 1 && shared->notes == 0);
    const pid_t sharing = vfork();
    if (sharing == 0) {
        const struct sigaction plain = {.sa_handler = SIG_DFL};
        _exit(lc_disposition_change(SIGTERM, &plain, NULL));
    }
    CHECK(waitpid(sharing, &status, 0) == sharing && status == 0);
    CHECK(programs(SIGTERM).sa_handler == called);
    raise(SIGTERM);
}

TEST(children_are_passed_theirs_and_leave_the_parents_alone)
{
    CHECK(in_a_child(has_children) == WELL && shared->calls == 2 && shared->notes == 1);
}

static _Atomic bool is_over;

static void *works(void *unused)
{
    (void)unused;
    while (!is_over) {
        change(SIGUSR2, called, is_over ? 0 : SA_RESTART);
    }
    return NULL;
}

static void is_sent_many(void)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    begin(BIT(SIGUSR1) | BIT(SIGUSR2));
    change(SIGUSR1, called, SA_RESTART);
    change(SIGUSR2, called, SA_RESTART);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, works, NULL) == 0);
    }
    const pid_t parent = getpid(), sender = fork();
    if (sender == 0) {
        for (int i = 0; i < SIGNALS_SENT; i++) {
            kill(parent, i % 2 ? SIGUSR1 : SIGUSR2);
        }
        _exit(WELL);
    }
    int status;
    while (waitpid(sender, &status, 0) != sender) {
    }
    raise(SIGUSR1);
    is_over = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    lc_dispositions_end();
    CHECK(shared->calls > 0 && shared->notes >= shared->calls);
}

TEST(ten_thousand_signals_while_threads_change_what_they_lead_to) { CHECK(in_a_child(is_sent_many) == WELL); }

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* there sigaction is the program's own */
static void calls_sigaction(void)
{
    struct sigaction now;
    lc_dispositions_begin(BIT(SIGTERM), note, (const void *)(uintptr_t)calls_sigaction);
    const struct sigaction action = {.sa_handler = called};
    CHECK(sigaction(SIGTERM, &action, NULL) == 0 && sigaction(SIGTERM, NULL, &now) == 0 &&
          now.sa_handler == called);
    raise(SIGTERM);
    lc_dispositions_end();
    raise(SIGTERM);
}

TEST(calls_of_the_programs_object_are_led_here)
{
    CHECK(in_a_child(calls_sigaction) == WELL && shared->calls == 2 && shared->notes == 1);
}
#endif

int main(void) { return run_stories(); }
