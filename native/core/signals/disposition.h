/* What the program has for each signal that is watched. The kernel calls ours; it has the signal noted, then
 * passes it on as if the program's had been called: with the same siginfo, mask, flags and stack. The
 * program, which sets its own at any time, and asks what there is, sees none of ours where its calls of
 * sigaction(2) come here.
 *
 * A signal that the program ignores stays ignored by the kernel, and is not noted. So is in the first process
 * of a container one for which it has the default action: there it does nothing.
 *
 * A fault comes once more where the default action is in place and the thread goes on: so it ends the process
 * where it was, with its own core. On a stack that has run over no handler can be called, but on an alternate
 * one (below).
 *
 * The kernel ends a process by a default action also where its threads sleep in a wait that only SIGKILL ends
 * (a network disk that is gone); a handler would wait for that. So lc_dispositions_end_by_pending is to be
 * called now and then.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Called on the thread that takes the signal, in its handler; `context`: its ucontext_t. `ends`: the
 * program has no handler for it. */
typedef void (*lc_signal_note)(int number, const siginfo_t *info, const void *context, bool ends);

#define LC_SIGNAL_BIT(number) (UINT64_C(1) << (number))
/* Those that a thread causes by what it executes; also sent by processes, as any other. */
#define LC_SIGNALS_FAULTS                                                                                    \
    (LC_SIGNAL_BIT(SIGSEGV) | LC_SIGNAL_BIT(SIGBUS) | LC_SIGNAL_BIT(SIGFPE) | LC_SIGNAL_BIT(SIGILL))
/* The signals that may be watched: by default they end the process. */
#define LC_SIGNALS_WATCHABLE                                                                                 \
    (LC_SIGNAL_BIT(SIGABRT) | LC_SIGNAL_BIT(SIGTERM) | LC_SIGNAL_BIT(SIGQUIT) | LC_SIGNAL_BIT(SIGALRM) |     \
     LC_SIGNAL_BIT(SIGUSR1) | LC_SIGNAL_BIT(SIGUSR2) | LC_SIGNAL_BIT(SIGHUP) | LC_SIGNAL_BIT(SIGINT) |       \
     LC_SIGNAL_BIT(SIGXCPU) | LC_SIGNALS_FAULTS)

static inline bool lc_signal_is_fault(int number, const siginfo_t *info)
{
    const bool is_one = number > 0 && number < 64 && (LC_SIGNALS_FAULTS & LC_SIGNAL_BIT(number));
    return is_one && info->si_code > 0 && !(number == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/* From now on these are noted, a bit each; bits that may not be watched are left out. `caller`: an address
 * in the object whose calls of sigaction are led here; NULL: none. One caller at a time. */
void lc_dispositions_begin(uint64_t signals, lc_signal_note note, const void *caller);
/* Gives back what is still ours. A handler that runs goes on, and notes nothing from here on. */
void lc_dispositions_end(void);
/* In a forked child: signals are passed on, and not noted, until it begins anew. */
void lc_dispositions_leave(void);

/* Ends the process where a signal for which the program has the default action has waited for a thread
 * since an earlier call, `patience_ns` or longer ago. The calling thread blocks all signals. */
void lc_dispositions_end_by_pending(uint64_t now_ns, uint64_t patience_ns);
/* Whether there is one for which it has the default action: that has to be called. */
bool lc_dispositions_may_end(void);

/* As sigaction(2), and in its place in the caller's object. Signal-safe. */
int lc_disposition_change(int number, const struct sigaction *wanted, struct sigaction *before);

/* ---- fault_stack.c ----------------------------------------------------------------------------------
 * Alternate stacks for the handlers of faults: where a thread's stack has run over, the kernel can call them
 * on another one only.
 *
 * A thread that has one already, as faulthandler's, keeps that; one that it sets later takes the place of
 * ours. Ours stays until the thread ends, as others may have noted it to put it back. Threads that one object
 * starts (CPython) have theirs from the begin on; others, where they come here themselves. */

/* From now on; one for the calling thread, too. `caller`: an address in the object whose threads get one;
 * NULL: none. One caller at a time. */
void lc_fault_stacks_begin(const void *caller);
void lc_fault_stacks_end(void);

/* One for the calling thread, if they are given. Keeps errno; not in a handler. */
void lc_fault_stack_give(void);
