/* A program that was started apart runs with what it was given, and no wait of ours meets it. */
#include "core/host/spawn_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

static char folder[] = "/tmp/loopcanary-apart-XXXXXX";
static char pipe_path[64], log_path[64];
static volatile sig_atomic_t child_signals;

static void count_child(int number)
{
    (void)number;
    child_signals = child_signals + 1;
}

static void it_runs_and_is_no_child_of_ours(void)
{
    char script[] = "exec 2>/dev/null; { echo $WORD; ls /proc/self/fd | wc -l; } > \"$1\"";
    char *const argv[] = {"/bin/sh", "-c", script, "sh", pipe_path, NULL};
    char *const envp[] = {"WORD=hello", "PATH=/usr/bin:/bin", NULL};
    CHECK(mkfifo(pipe_path, 0600) == 0);
    const int inherited = open("/dev/null", O_RDONLY); /* not close-on-exec: it is closed all the same */
    CHECK(inherited >= 0);
    signal(SIGCHLD, count_child);
    CHECK(lc_spawn_apart(argv[0], argv, envp, log_path) == 0);
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
    CHECK(strcmp(text, "hello\n4\n") == 0);
    errno = 0;
    CHECK(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD);
    CHECK(child_signals == 0);
    unlink(pipe_path);
}

static void what_cannot_be_started_is_an_error(void)
{
    char *const argv[] = {"/no/such/program", NULL};
    char *const shell[] = {"/bin/sh", "-c", "exit", NULL};
    char *const envp[] = {NULL};
    CHECK(lc_spawn_apart(argv[0], argv, envp, log_path) == ENOENT);
    CHECK(lc_spawn_apart(shell[0], shell, envp, "/no/such/log") == ENOENT);
    errno = 0;
    CHECK(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD);
}

#if !defined(__SANITIZE_THREAD__)
static unsigned children(void)
{
    char path[64], text[256] = "";
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    for (const char *at = text; *at != '\0'; at++) {
        count += *at == ' ';
    }
    return count;
}

/* Its orphans would be its children: no wait meets them, while they live and when they end. */
static void a_reaper_does_not_meet_it(void)
{
    char script[] = "read word < \"$1\"";
    char *const argv[] = {"/bin/sh", "-c", script, "sh", pipe_path, NULL};
    char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(mkfifo(pipe_path, 0600) == 0);
        CHECK(lc_spawn_apart(argv[0], argv, envp, log_path) == 0);
        const int writer = open(pipe_path, O_WRONLY);
        errno = 0;
        CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
        CHECK(children() == 1); /* the guard; one before was forgotten */
        siginfo_t ended;
        close(writer);
        CHECK(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT | __WCLONE) == 0); /* the shell, and then its guard */
        CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
        unlink(pipe_path);
    }
    CHECK(child_signals == 0);
}

static void one_that_cannot_start_leaves_no_guard(void)
{
    char *const argv[] = {"/no/such/program", NULL};
    char *const envp[] = {NULL};
    CHECK(lc_spawn_apart(argv[0], argv, envp, log_path) == ENOENT);
    CHECK(children() == 0);
}

/* A guard has the memory of the reaper, and gives it back when that ends. */
static void a_guard_ends_with_its_program(void)
{
    char script[] = "read word < \"$1\"";
    char *const argv[] = {"/bin/sh", "-c", script, "sh", pipe_path, NULL};
    char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    CHECK(mkfifo(pipe_path, 0600) == 0);
    const pid_t program = fork();
    if (program == 0) {
        CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
        CHECK(lc_spawn_apart(argv[0], argv, envp, log_path) == 0);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(program, &status, 0) == program && status == 0);
    const int writer = open(pipe_path, O_WRONLY); /* it lives on */
    /* Guard and shell are ours now, with the usual signal: the one ends by itself, the other when it has read. */
    CHECK(waitpid(-1, &status, 0) > 0 && status == 0);
    close(writer);
    CHECK(waitpid(-1, &status, 0) > 0);
    CHECK(waitpid(-1, &status, 0) == -1 && errno == ECHILD);
    unlink(pipe_path);
}

#endif

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    it_runs_and_is_no_child_of_ours();
    what_cannot_be_started_is_an_error();
#if defined(__SANITIZE_THREAD__)
    fprintf(stderr, "skipped: the thread sanitizer keeps books in thread-local memory, of which a guard has none\n");
#else
    a_reaper_does_not_meet_it();
    one_that_cannot_start_leaves_no_guard();
    a_guard_ends_with_its_program();
#endif
    unlink(log_path);
    rmdir(folder);
    return 0;
}
