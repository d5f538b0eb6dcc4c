/* The default action ends a process wherever the kernel would have ended it, and nowhere else. */
#include "tests/core/signals/in_child.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <ucontext.h>

/* which calls handlers later with a context of its own, and makes a fork of vfork */
#if !defined(__SANITIZE_THREAD__)
static void is_opened_by_a_call(void)
{
    sigset_t none, blocked;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    begin(BIT(SIGTERM));
    kill(getpid(), SIGTERM);
    sigsuspend(&none);
}

TEST(the_default_action_ends_a_call_that_had_opened_the_signal_for_itself)
{
    const int status = in_a_child(is_opened_by_a_call);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
#endif

static void *looks_for_pending(void *unused)
{
    sigset_t all;
    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (uint64_t now = 1;; now++) {
        lc_dispositions_end_by_pending(now, 20);
        usleep(1000);
        shared->number = (int)now; /* so many looks */
    }
    return NULL;
}

static void look_for_pending(void)
{
    pthread_t other;
    begin(BIT(SIGTERM));
    CHECK(lc_dispositions_may_end());
    CHECK(pthread_create(&other, NULL, looks_for_pending, NULL) == 0);
}

#if !defined(__SANITIZE_THREAD__)
/* until that ends or executes: only a fatal signal ends such a wait before */
static void waits_for_its_child(void)
{
    int begun[2];
    char byte = 0;
    CHECK(pipe(begun) == 0);
    look_for_pending();
    const pid_t parent = getpid(), killer = fork();
    if (killer == 0) {
        close(begun[1]);
        _exit(read(begun[0], &byte, 1) == 1 && kill(parent, SIGTERM) == 0 ? WELL : 1);
    }
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!write(begun[1], &byte, 1); /* as it runs, its parent waits */
        (void)poll(NULL, 0, 600 * 1000);  /* ends a hang */
        _exit(1);
    }
    _exit(1);
}

TEST(a_process_in_a_wait_that_no_handler_ends_is_ended)
{
    const int status = in_a_child(waits_for_its_child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
#endif

static void blocks_it(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    look_for_pending();
    kill(getpid(), SIGTERM);
    const int looks = shared->number;
    while (shared->number < looks + 100) {
        usleep(1000);
    }
}

TEST(a_signal_that_the_program_blocks_waits) { CHECK(in_a_child(blocks_it) == WELL); }

static void comes_late(void)
{
    struct sigaction ours;
    siginfo_t info = {.si_signo = SIGTERM, .si_code = SI_USER};
    ucontext_t context = {0};
    begin(BIT(SIGTERM));
    CHECK(sigaction(SIGTERM, NULL, &ours) == 0 && sigprocmask(SIG_SETMASK, NULL, &context.uc_sigmask) == 0);
    lc_dispositions_end();
    ours.sa_sigaction(SIGTERM, &info, &context); /* a thread that the kernel has sent there before */
}

TEST(a_signal_that_comes_as_all_is_given_back_is_not_lost)
{
    const int status = in_a_child(comes_late);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static struct sigaction before_another;

static void another_that_calls_what_was_there(int number)
{
    if (before_another.sa_handler != SIG_DFL && before_another.sa_handler != SIG_IGN) {
        before_another.sa_handler(number); /* without siginfo, though ours has it */
    }
}

static void is_called_by_another(void)
{
    const struct sigaction another = {.sa_handler = another_that_calls_what_was_there};
    begin(BIT(SIGTERM) | BIT(SIGUSR1));
    change(SIGUSR1, called, 0);
    CHECK(sigaction(SIGTERM, &another, &before_another) == 0);
    raise(SIGTERM); /* of the default action another handler would have called nothing */
    CHECK(sigaction(SIGUSR1, &another, &before_another) == 0);
    raise(SIGUSR1);
}

TEST(another_handler_may_call_what_was_there_before_it)
{
    CHECK(in_a_child(is_called_by_another) == WELL && shared->calls == 1 && shared->notes == 0);
}

static void has_fewer_watched(void)
{
    struct sigaction now;
    begin(BIT(SIGTERM) | BIT(SIGUSR1));
    change(SIGUSR1, called, 0);
    lc_dispositions_leave(); /* as in a child */
    CHECK(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    begin(BIT(SIGTERM));
    CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == called);
    CHECK(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler != SIG_DFL);
    raise(SIGUSR1);
    lc_dispositions_end();
}

TEST(what_is_no_longer_watched_is_given_back)
{
    CHECK(in_a_child(has_fewer_watched) == WELL && shared->calls == 1 && shared->notes == 0);
}

static void is_the_first_process(void)
{
    int status;
    CHECK(unshare(CLONE_NEWPID) == 0);
    const pid_t first = fork();
    if (first == 0) {
        struct sigaction now;
        begin(BIT(SIGTERM));
        raise(SIGTERM);
        CHECK(sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == SIG_DFL && !lc_dispositions_may_end());
        change(SIGTERM, called, 0);
        raise(SIGTERM);
        _exit(WELL);
    }
    CHECK(waitpid(first, &status, 0) == first && status == WELL);
}

TEST(the_first_process_of_a_container_ignores_what_it_ignored)
{
    if (geteuid() == 0 && unshare(0) == 0) {
        CHECK(in_a_child(is_the_first_process) == WELL && shared->calls == 1 && shared->notes == 1);
    }
}

int main(void) { return run_stories(); }
