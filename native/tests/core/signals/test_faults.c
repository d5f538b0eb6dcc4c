/* Faults of a program: noted, and then as without us. */
#include "tests/core/signals/in_child.h"

#include <setjmp.h>

static sigjmp_buf back;

/* Memory that nobody may touch: no undefined behaviour, and a fault all the same. */
static volatile char *forbidden(void)
{
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    return page;
}

static void comes_back(int number)
{
    shared->calls += number == SIGSEGV;
    siglongjmp(back, 1);
}

static void touches_what_is_not_its_own(void)
{
    change(SIGSEGV, SIG_DFL, 0);
    begin(BIT(SIGSEGV));
    *forbidden() = 1;
}

TEST(a_fault_is_noted_and_ends_the_process_where_it_was)
{
    const int status = in_a_child(touches_what_is_not_its_own);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(shared->notes == 1 && shared->number == SIGSEGV && shared->code == SEGV_ACCERR && shared->ends);
}

static void has_a_handler(void)
{
    change(SIGSEGV, comes_back, SA_NODEFER);
    begin(BIT(SIGSEGV));
    if (sigsetjmp(back, 1) == 0) {
        *forbidden() = 1;
    }
    CHECK(shared->calls == 1 && programs(SIGSEGV).sa_handler == comes_back);
    change(SIGSEGV, SIG_DFL, 0); /* a crash reporter that has done its work */
    *forbidden() = 1;
}

TEST(a_handler_of_the_program_gets_it)
{
    const int status = in_a_child(has_a_handler);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(shared->notes == 2 && shared->calls == 1 && shared->ends);
}

static struct sigaction before_it;

/* As runtimes do that use faults themselves, for those that are not theirs. */
static void passes_it_on(int number, siginfo_t *info, void *context)
{
    shared->calls++;
    before_it.sa_sigaction(number, info, context);
}

static void has_another_handler_in_front(void)
{
    struct sigaction theirs = {.sa_flags = SA_SIGINFO};
    theirs.sa_sigaction = passes_it_on;
    change(SIGSEGV, SIG_DFL, 0);
    begin(BIT(SIGSEGV));
    CHECK(sigaction(SIGSEGV, &theirs, &before_it) == 0 && (before_it.sa_flags & SA_SIGINFO));
    alarm(600); /* ends a hang */
    *forbidden() = 1;
}

TEST(a_handler_that_passes_it_on_does_not_fault_for_ever)
{
    const int status = in_a_child(has_another_handler_in_front);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && shared->calls == 1);
}

static void is_sent_one(void)
{
    change(SIGSEGV, SIG_DFL, 0);
    begin(BIT(SIGSEGV));
    kill(getpid(), SIGSEGV);
}

TEST(one_that_is_sent_is_no_fault)
{
    const int status = in_a_child(is_sent_one);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(shared->notes == 1 && shared->code == SI_USER && shared->pid != 0);
}

static void faults_in_a_forked_child(void)
{
    int status;
    change(SIGSEGV, SIG_DFL, 0);
    begin(BIT(SIGSEGV));
    const pid_t child = fork();
    if (child == 0) {
        lc_dispositions_leave();
        *forbidden() = 1;
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

TEST(a_forked_child_faults_as_any_other)
{
    CHECK(in_a_child(faults_in_a_forked_child) == WELL);
    CHECK(shared->notes == 0);
}

int main(void) { return run_stories(); }
