/* A program that was started apart shares nothing with us, and no wait of ours meets it; where orphans are
 * ours, it is an ordinary child. */
#include "core/host/spawn_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/core/clock/still_clock.h"

#define PATIENCE_NS UINT64_C(5000000000) /* of lc_spawn_apart, for the execve */

static char folder[] = "/tmp/loopcanary-apart-XXXXXX";
static char pipe_path[64], program_path[64];
static char *const nothing[] = {NULL};
static volatile sig_atomic_t child_signals;

static void count_child(int number)
{
    (void)number;
    child_signals = child_signals + 1;
}

static void no_child_is_left(void)
{
    errno = 0;
    CHECK(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD);
}

TEST(it_runs_and_is_no_child_of_ours)
{
    char script[] = "{ echo $WORD; ls /proc/self/fd | wc -l; pwd; } > \"$1\"";
    char *const argv[] = {"/bin/sh", "-c", script, "sh", pipe_path, NULL};
    char *const envp[] = {"WORD=hello", "PATH=/usr/bin:/bin", NULL};
    const int inherited = open("/dev/null", O_RDONLY); /* not close-on-exec: it is closed all the same */
    CHECK(inherited >= 0);
    /* the thread sanitizer's signal(3) lets it interrupt a wait */
    CHECK(sigaction(SIGCHLD, &(struct sigaction){.sa_handler = count_child, .sa_flags = SA_RESTART}, NULL) ==
          0);
    CHECK(lc_spawn_apart(argv[0], argv, envp) == 0);
    char text[64] = "";
    const int reader = open(pipe_path, O_RDONLY); /* returns when the other end is opened */
    CHECK(reader >= 0);
    size_t length = 0;
    ssize_t got;
    while ((got = read(reader, text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(reader);
    close(inherited);
    /* stdin, stdout, stderr, and the folder that ls reads. */
    CHECK(strcmp(text, "hello\n4\n/\n") == 0);
    no_child_is_left();
    CHECK(child_signals == 0);
}

TEST(what_cannot_be_started_is_an_error)
{
    char *const argv[] = {"/no/such/program", NULL};
    CHECK(lc_spawn_apart(argv[0], argv, nothing) == ENOENT);
    no_child_is_left();
    CHECK(child_signals == 0);
}

/* The last child of this process; 0: it has none. */
static pid_t last_child(void)
{
    char path[64], text[256] = "", *end = text;
    long pid = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    for (long next; (next = strtol(end, &end, 10)) != 0;) {
        pid = next;
    }
    return (pid_t)pid;
}

/* It waits for a writer of the pipe. */
static pid_t start_child(void)
{
    char script[] = "read word < \"$1\"";
    char *const argv[] = {"/bin/sh", "-c", script, "sh", pipe_path, NULL};
    CHECK(lc_spawn_apart(argv[0], argv, nothing) == 0);
    return last_child();
}

static void let_it_end(void) { close(open(pipe_path, O_WRONLY)); }

static void wait_until_it_has_ended(pid_t pid)
{
    siginfo_t ended;
    int error;
    do { /* the child's own signal interrupts it */
        error = waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) == 0 ? 0 : errno;
    } while (error == EINTR);
    CHECK(error == 0);
}

TEST(a_reaper_has_it_as_an_ordinary_child)
{
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    for (int i = 1; i <= 2; i++) {
        int status = 1;
        const pid_t pid = start_child();
        CHECK(pid > 0 && getsid(pid) == pid);
        CHECK(waitpid(-1, &status, WNOHANG) == 0); /* it lives, and is met */
        let_it_end();
        CHECK(waitpid(-1, &status, 0) == pid && WIFEXITED(status));
        CHECK(child_signals == i);
        lc_spawned_children_bury(); /* the program was faster */
        CHECK(!lc_is_spawned_child(pid));
        no_child_is_left();
    }
}

TEST(it_shares_no_memory)
{
    const pid_t pid = start_child();
    const long order = syscall(SYS_kcmp, getpid(), pid, KCMP_VM, 0, 0);
    CHECK(order != 0 && (order > 0 || errno == EPERM || errno == ENOSYS));
    let_it_end();
    CHECK(waitpid(pid, NULL, 0) == pid);
}

TEST(one_that_nobody_waits_for_is_buried)
{
    const pid_t pid = start_child();
    lc_spawned_children_bury();
    CHECK(lc_is_spawned_child(pid)); /* it lives */
    let_it_end();
    wait_until_it_has_ended(pid);
    lc_spawned_children_bury();
    CHECK(!lc_is_spawned_child(pid));
    no_child_is_left();
}

TEST(one_beside_another_is_buried_too)
{
    const pid_t first = start_child(), second = start_child();
    CHECK(first != second && lc_is_spawned_child(first) && lc_is_spawned_child(second));
    const int both = open(pipe_path, O_RDWR);
    CHECK(write(both, "\n\n", 2) == 2);
    wait_until_it_has_ended(first);
    wait_until_it_has_ended(second);
    close(both);
    lc_spawned_children_bury();
    no_child_is_left();
}

TEST(another_child_of_that_number_is_left_alone)
{
    const pid_t pid = start_child();
    const pid_t child = fork();
    if (child == 0) {
        CHECK(!lc_is_spawned_child(pid)); /* its parent's */
        lc_spawned_children_bury();
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    let_it_end();
    CHECK(waitpid(pid, NULL, 0) == pid);
}

TEST(a_reaper_keeps_nothing_of_one_that_cannot_start)
{
    char *const argv[] = {"/no/such/program", NULL};
    const int before = child_signals;
    CHECK(lc_spawn_apart(argv[0], argv, nothing) == ENOENT);
    no_child_is_left();
    CHECK(child_signals == before);
}

/* As of a hardened service: whoever changes a priority is ended. */
static bool forbid_priorities(void)
{
    struct sock_filter words[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpriority, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setscheduler, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof words / sizeof *words, .filter = words};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

TEST(it_runs_behind_a_filter_that_knows_no_priorities)
{
    enum { SKIPPED = 77 };
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        alarm(600);                                            /* ends a hang */
        CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0); /* not inherited */
        if (!forbid_priorities()) {
            _exit(SKIPPED);
        }
        const pid_t pid = start_child();
        let_it_end();
        int ended = 1;
        _exit(pid > 0 && waitpid(pid, &ended, 0) == pid && WIFEXITED(ended) ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SKIPPED);
}

/* ---- an executable whose disk does not answer: a lease on the file holds up who opens it (fcntl(2),
 * F_SETLEASE) ---- */

static sigset_t of_the_disk;

static int lease(void)
{
    sigemptyset(&of_the_disk);
    sigaddset(&of_the_disk, SIGIO);
    CHECK(pthread_sigmask(SIG_BLOCK, &of_the_disk, NULL) == 0);
    const int fd = open(program_path, O_CREAT | O_RDWR | O_CLOEXEC, 0700);
    CHECK(fd >= 0);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void bury_what_was_killed(void)
{
    while (waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0) {
        lc_spawned_children_bury();
    }
    no_child_is_left();
}

static void *start_leased(void *error)
{
    char *const argv[] = {program_path, NULL};
    *(int *)error = lc_spawn_apart(argv[0], argv, nothing);
    return NULL;
}

/* The kernel tells by a signal that the helper opens the file, and waits there. */
static void *end_patience_at_the_disk(void *unused)
{
    int number = 0;
    CHECK(sigwait(&of_the_disk, &number) == 0);
    pass_time(PATIENCE_NS);
    return unused;
}

TEST(a_disk_that_does_not_answer_is_not_waited_for_long)
{
    const int fd = lease();
    if (fd < 0) {
        fprintf(stderr, "skipped: no leases here\n");
        return;
    }
    int error = 0;
    pthread_t patience;
    CHECK(pthread_create(&patience, NULL, end_patience_at_the_disk, NULL) == 0);
    (void)start_leased(&error);
    CHECK(pthread_join(patience, NULL) == 0 && error == EINPROGRESS);
    close(fd);
    bury_what_was_killed();
}

#if !defined(__SANITIZE_THREAD__) /* its setuid waits for threads of its own */
TEST(what_starts_while_we_give_up_our_rights_is_killed)
{
    const int fd = geteuid() == 0 ? lease() : -1;
    if (fd < 0) {
        fprintf(stderr, "skipped: it takes root, and leases\n");
        return;
    }
    int error = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, start_leased, &error) == 0);
    siginfo_t none = {0};
    /* ECHILD: it is not yet there */
    while (waitid(P_ALL, 0, &none, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) {
    }
    /* As the clock stands, the disk is waited for without end: only these calls end that, or the test hangs. */
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    CHECK(pthread_join(thread, NULL) == 0 && error == EINPROGRESS);
    close(fd);
    bury_what_was_killed();
}
#endif

int main(void)
{
    stop_clock(); /* however late a helper is run, it is waited for */
    CHECK(mkdtemp(folder) != NULL && chmod(folder, 0777) == 0);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    snprintf(program_path, sizeof program_path, "%s/program", folder);
    CHECK(mkfifo(pipe_path, 0600) == 0);
    run_tests();
    unlink(program_path);
    unlink(pipe_path);
    rmdir(folder);
    return 0;
}
