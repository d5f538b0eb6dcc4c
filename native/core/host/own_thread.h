/* Threads of ours that are not joined: detached, with the program's signals blocked; and what rights they
 * have. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Runs run(argument) on a new thread with a stack of 256 KiB beside what the C library takes, or one on which
 * Python can run. 0 or an errno. It allocates, and needs neither the GIL nor a lock of ours. */
int lc_own_thread_start(void *(*run)(void *), void *argument, bool runs_python);

/* capset(2) and prctl(2) are each thread's own. So this thread gives up the capabilities that the main
 * thread has given up for good, and gains none by an execution. Not those that it has only lowered: it may
 * raise them, and change the user of all threads, and where that fails for some, glibc ends the process
 * (nptl_setxid.c). Seccomp and Landlock cannot be followed. No lock, no allocation; some 30 us. False:
 * this thread may have more than the main thread has left, and nothing is to be started from it. */
bool lc_own_rights_follow(void);

/* Whether seccomp filters this thread's system calls, or that is not known. As cheap. */
bool lc_own_thread_is_filtered(void);

/* Blocks the program's signals on this thread; a thread inherits its maker's mask. Those that a fault of our
 * own raises stay open, so that faulthandler or a crash reporter sees it. `before`: the mask until now. */
static inline void lc_own_signals_begin(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(&blocked, faults[i]);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}
