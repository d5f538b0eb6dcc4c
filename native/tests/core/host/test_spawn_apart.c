/* A program that was started apart runs with what it was given, and no wait of ours meets it. */
#include "core/host/spawn_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    it_runs_and_is_no_child_of_ours();
    what_cannot_be_started_is_an_error();
    unlink(log_path);
    rmdir(folder);
    return 0;
}
