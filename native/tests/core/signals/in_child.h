/* Stories of signals, each in a child process; what it saw is in memory that it shares with the test. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/signals/disposition.h"
#include "tests/check.h"

#define BIT LC_SIGNAL_BIT

enum { WELL = 0 };

typedef struct {
    _Atomic int notes, calls, number, code, pid, ends;
} seen;

static seen *shared; /* with the children */

static inline void note(int number, const siginfo_t *info, const void *context, bool ends)
{
    (void)context;
    shared->number = number;
    shared->code = info->si_code;
    shared->pid = info->si_pid;
    shared->ends = ends;
    shared->notes++;
}

static inline void called(int number) { shared->calls += number == SIGTERM || number == SIGUSR1; }

/* The status of a child that has run the story. */
static inline int in_a_child(void (*story)(void))
{
    int status = -1;
    memset(shared, 0, sizeof *shared);
    const pid_t child = fork();
    if (child == 0) {
        story();
        _exit(WELL);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

static inline void begin(uint64_t signals) { lc_dispositions_begin(signals, note, NULL); }

static inline struct sigaction programs(int number)
{
    struct sigaction now;
    CHECK(lc_disposition_change(number, NULL, &now) == 0);
    return now;
}

static inline void change(int number, void (*handler)(int), int flags)
{
    const struct sigaction wanted = {.sa_handler = handler, .sa_flags = flags};
    CHECK(lc_disposition_change(number, &wanted, NULL) == 0);
}

/* All tests of the file. */
static inline int run_stories(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return run_tests();
}
