/* Which signals threads of ours take: only those that a fault of their own raises, so that faulthandler or a crash
 * reporter sees it. All others belong to the program. */
#ifndef LOOPCANARY_OWN_SIGNALS_H
#define LOOPCANARY_OWN_SIGNALS_H

#include <signal.h>

/* Blocks the program's signals on this thread; a thread inherits its maker's mask. `before`: the mask until now. */
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

#endif
