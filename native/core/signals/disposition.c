#include "core/signals/disposition.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/got/got.h"
#include "core/patches/patches.h"

enum { SIGNALS = 64, SPINS = 256, SLEEPS = 100, PATCHES = 4, FIRST_PROCESS = 1 };

/* By address, which the compiler must not see through: calls of ours are not led back here where this
 * object's are replaced, too. */
static int (*const volatile kernel)(int, const struct sigaction *, struct sigaction *) = sigaction;

static struct sigaction asked[SIGNALS]; /* the program's; of those signals for which the kernel has ours */
static _Atomic uint64_t watched;
static _Atomic(lc_signal_note) noting; /* NULL: nothing is noted */
static _Atomic pid_t process; /* a child that shares this memory until its exec (vfork) is another one */
static _Atomic pid_t busy;    /* the process of the thread that is inside; 0: none is */
static lc_got_patch patches[PATCHES];
static _Atomic uint64_t ending; /* of those watched: the program has the default action for them */

static void on_signal(int number, siginfo_t *info, void *context);

/* With all signals blocked: no handler waits for the thread that it has interrupted. Others wait for a few
 * instructions, or for as long as the host does not run that thread; where a fork has left it taken, whose
 * holder is not here, for a tenth of a second. */
static void enter(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    const pid_t own = getpid();
    pid_t holder = 0;
    for (unsigned tries = 1; !atomic_compare_exchange_strong(&busy, &holder, own); tries++) {
        if (holder != own && tries >= SPINS * SLEEPS) {
            atomic_store(&busy, own);
            break;
        }
        holder = 0;
        (void)(tries % SPINS == 0 && poll(NULL, 0, 1));
    }
}

static void leave(const sigset_t *before)
{
    atomic_store(&busy, 0);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

static bool is_plain(const struct sigaction *action, void (*handler)(int))
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == handler;
}

/* Ours, with all that the program's asks for. The default action needs no stack. */
static struct sigaction around(const struct sigaction *wanted)
{
    struct sigaction ours = *wanted;
    ours.sa_sigaction = on_signal;
    ours.sa_flags |= SA_SIGINFO;
    if (is_plain(wanted, SIG_DFL)) {
        ours.sa_flags |= SA_RESTART | SA_ONSTACK;
    }
    return ours;
}

/* Inside. Keeps `wanted` with what the C library and the kernel add, as a later question shows them. */
static int put(int number, const struct sigaction *wanted)
{
    const struct sigaction ours = around(wanted);
    struct sigaction made;
    const bool ends = is_plain(wanted, SIG_DFL);
    atomic_fetch_and(&ending, ~LC_SIGNAL_BIT(number));
    const bool has_no_effect =
        ends && atomic_load(&process) == FIRST_PROCESS && !(LC_SIGNALS_FAULTS & LC_SIGNAL_BIT(number));
    if (is_plain(wanted, SIG_IGN) || has_no_effect) {
        return kernel(number, wanted, NULL);
    }
    if (kernel(number, &ours, NULL) != 0) {
        return -1;
    }
    asked[number] = *wanted;
    atomic_fetch_or(&ending, ends ? LC_SIGNAL_BIT(number) : 0u);
    if (kernel(number, NULL, &made) == 0) {
        asked[number].sa_flags |= made.sa_flags & ~ours.sa_flags;
        asked[number].sa_mask = made.sa_mask;
        asked[number].sa_restorer = made.sa_restorer;
    }
    return 0;
}

int lc_disposition_change(int number, const struct sigaction *wanted, struct sigaction *before)
{
    const bool is_watched = number > 0 && number < SIGNALS && (atomic_load(&watched) & LC_SIGNAL_BIT(number));
    struct sigaction copy, now;
    sigset_t mask;
    if (!is_watched || getpid() != atomic_load(&process)) {
        return kernel(number, wanted, before);
    }
    if (wanted != NULL) {
        copy = *wanted;
    }
    enter(&mask);
    int result = kernel(number, NULL, &now);
    if (result == 0 && is_ours(&now)) {
        now = asked[number];
    }
    if (result == 0 && wanted != NULL) {
        result = put(number, &copy);
    }
    const int error = errno;
    leave(&mask);
    if (result == 0 && before != NULL) {
        *before = now;
    }
    errno = error;
    return result;
}

/* In the first process of a container one that was sent does nothing by default; a fault ends it. */
static bool does_nothing(int number, const siginfo_t *info)
{
    return atomic_load(&process) == FIRST_PROCESS && !lc_signal_is_fault(number, info);
}

/* What the kernel would have done: the signal is pending when the handler returns, and ends the process
 * where it was. A call that had opened it for itself (ppoll, sigsuspend) would close it again before that. */
static void end_by(int number, siginfo_t *info, void *context)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    const pid_t own = (pid_t)syscall(SYS_gettid);
    if (does_nothing(number, info)) {
        return;
    }
    (void)kernel(number, &plain, NULL);
    if (lc_signal_is_fault(number, info)) { /* what has caused it is done again */
        return;
    }
    sigdelset(&((ucontext_t *)context)->uc_sigmask, number);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), own, number, info) != 0) {
        (void)syscall(SYS_tgkill, getpid(), own, number);
    }
}

/* What the program has for it. False: another handler has called ours, which was there before it. Where
 * the default action is in place, the kernel has called: once, as the program had asked, or just before
 * ours was taken out. */
static bool find_programs(int number, struct sigaction *action)
{
    struct sigaction now;
    sigset_t mask;
    enter(&mask);
    *action = asked[number];
    const bool by_kernel = kernel(number, NULL, &now) != 0 || is_ours(&now) || is_plain(&now, SIG_DFL);
    if (by_kernel && (action->sa_flags & SA_RESETHAND)) { /* the kernel has done so */
        asked[number] = (struct sigaction){.sa_handler = SIG_DFL};
    }
    leave(&mask);
    return by_kernel;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    struct sigaction action;
    const bool by_kernel = find_programs(number, &action);
    const bool ends = is_plain(&action, SIG_DFL);
    const lc_signal_note note = atomic_load(&noting);
    if (by_kernel && note != NULL && getpid() == atomic_load(&process) &&
        !(ends && does_nothing(number, info))) {
        note(number, info, context, ends);
    }
    errno = error;
    if (action.sa_flags & SA_SIGINFO) {
        action.sa_sigaction(number, info, context);
    } else if (ends && by_kernel) { /* another handler finds nothing to call where the default action is */
        end_by(number, info, context);
        /* but it would fault for ever; there may be no info */
    } else if (ends && (LC_SIGNALS_FAULTS & LC_SIGNAL_BIT(number))) {
        const struct sigaction plain = {.sa_handler = SIG_DFL};
        (void)kernel(number, &plain, NULL);
    } else if (!ends && action.sa_handler != SIG_IGN) {
        action.sa_handler(number);
    }
}

bool lc_dispositions_may_end(void) { return (atomic_load(&ending) & atomic_load(&watched)) != 0; }

/* Whether the main thread, which the kernel prefers, blocks the signal: then the signal is to wait. */
static bool is_blocked(int number)
{
    char path[64], text[4096];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)getpid());
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1u);
    if (file >= 0) {
        close(file);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *found = strstr(text, "SigBlk:");
    return found == NULL || ((strtoull(found + sizeof "SigBlk:" - 1u, NULL, 16) >> (number - 1)) & 1u);
}

/* Ends the process by a signal to this thread: one more to the process would be dropped beside the one that
 * waits. */
static void end_here(int number)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    struct sigaction now;
    sigset_t open_here, mask;
    enter(&mask);
    const bool ends = kernel(number, NULL, &now) == 0 && is_ours(&now) && is_plain(&asked[number], SIG_DFL);
    if (ends) {
        (void)kernel(number, &plain, NULL);
    }
    leave(&mask);
    if (ends) {
        (void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
        sigemptyset(&open_here);
        sigaddset(&open_here, number);
        pthread_sigmask(SIG_UNBLOCK, &open_here, NULL);
    }
}

void lc_dispositions_end_by_pending(uint64_t now_ns, uint64_t patience_ns)
{
    static uint64_t since_ns[SIGNALS]; /* 0: it was not pending at the last call */
    const uint64_t may_end = atomic_load(&ending) & atomic_load(&watched);
    sigset_t pending;
    if (may_end == 0 || sigpending(&pending) != 0) {
        return;
    }
    for (int number = 1; number < SIGNALS; number++) {
        if (!(may_end & LC_SIGNAL_BIT(number)) || sigismember(&pending, number) != 1) {
            since_ns[number] = 0;
        } else if (since_ns[number] == 0) {
            since_ns[number] = now_ns;
        } else if (now_ns - since_ns[number] >= patience_ns) {
            since_ns[number] = 0;
            if (!is_blocked(number)) {
                end_here(number);
            }
        }
    }
}

/* Puts back what the program has for those of `signals`, for which the kernel has ours. */
static void give_back(uint64_t signals, bool only_default)
{
    for (int number = 1; number < SIGNALS; number++) {
        struct sigaction now;
        sigset_t mask;
        if (signals & LC_SIGNAL_BIT(number)) {
            enter(&mask);
            const bool has_ours = kernel(number, NULL, &now) == 0 && is_ours(&now);
            const bool stays = has_ours && only_default && !is_plain(&asked[number], SIG_DFL);
            if (has_ours && !stays) {
                (void)kernel(number, &asked[number], NULL);
            }
            leave(&mask);
            if (!stays) { /* another one's handler may call ours */
                const bool is_free = has_ours || is_plain(&now, SIG_DFL) || is_plain(&now, SIG_IGN);
                (void)lc_patch_note("%csignal %d", is_free ? '-' : '!', number);
            }
        }
    }
}

static void lead_calls_here(const void *caller)
{
    if (caller != NULL && patches[0].entry == NULL) {
        (void)lc_got_lead(caller, "sigaction", (void *)(uintptr_t)kernel,
                          (void *)(uintptr_t)lc_disposition_change, patches, PATCHES);
    }
}

static void leave_calls(void)
{
    for (size_t i = 0; i < PATCHES; i++) {
        (void)lc_got_restore(&patches[i]);
    }
}

void lc_dispositions_begin(uint64_t signals, lc_signal_note note, const void *caller)
{
    const uint64_t wanted = signals & LC_SIGNALS_WATCHABLE;
    atomic_store(&process, getpid());
    give_back(atomic_exchange(&watched, wanted) & ~wanted, false); /* of a parent's engine */
    atomic_store(&noting, note);
    atomic_store(&ending, 0);
    lead_calls_here(caller);
    for (int number = 1; number < SIGNALS; number++) {
        struct sigaction now;
        sigset_t mask;
        if (wanted & LC_SIGNAL_BIT(number)) {
            enter(&mask);
            if (kernel(number, NULL, &now) == 0) {
                (void)put(number, is_ours(&now) ? &asked[number] : &now);
            }
            leave(&mask);
            (void)lc_patch_note("-signal %d", number); /* a parent's, that is ours again */
            (void)lc_patch_note("+signal %d", number);
        }
    }
}

void lc_dispositions_end(void)
{
    const uint64_t ours = atomic_exchange(&watched, 0);
    atomic_store(&noting, NULL);
    leave_calls();
    give_back(ours, false);
}

void lc_dispositions_leave(void)
{
    atomic_store(&noting, NULL);
    atomic_store(&process, getpid());
    atomic_store(&busy, 0);
    give_back(atomic_load(&watched), true); /* nobody looks for pending ones here */
}
