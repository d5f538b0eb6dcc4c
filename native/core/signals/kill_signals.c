#include "core/signals/kill_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/signals/disposition.h"
#include "core/signals/fault_stack.h"
#include "core/watchdog/stall_watch.h"

enum { LEAVE_TRIES = 200, PENDING_NS = 250 * 1000 * 1000, LOOK_NS = 500 * 1000 * 1000 };

static _Atomic(lc_watchdog *) noted_by; /* NULL: nothing is noted */
static lc_bell asked, answered;         /* how many signals came; how many the watchdog has dealt with */
static _Atomic uint32_t unanswered;     /* 1: a handler waited in vain, and nothing was answered since */
static _Atomic uint32_t inside;         /* handlers that touch the watchdog or its flight file */
static _Atomic uint64_t faulty;         /* the thread that has caused the latest fault; 0: it was looked at */

static lc_signals *signals_of(const lc_flight *flight)
{
    return (lc_signals *)((char *)flight->header + LC_SIGNALS_OFFSET);
}

/* By a process, and not by the kernel or a timer. */
static bool is_sent(const siginfo_t *info)
{
    return info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
}

/* A call, or a function's own frame, touches memory beside the stack pointer. A jump to code on a stack, which may not be
 * executed, does not. */
static bool is_stack_over(int number, const siginfo_t *info, const ucontext_t *context)
{
    enum { BELOW = 4096, ABOVE = 64 * 1024 };
#if defined(__x86_64__)
    const uint64_t pointer = (uint64_t)context->uc_mcontext.gregs[REG_RSP], code = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    const uint64_t pointer = context->uc_mcontext.sp, code = context->uc_mcontext.pc;
#endif
    const uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    return number == SIGSEGV && lc_signal_is_fault(number, info) && address != code && address + BELOW >= pointer &&
           address < pointer + ABOVE;
}

static void put(const lc_flight *flight, int number, const siginfo_t *info, const void *context, bool ends)
{
    lc_signals *signals = signals_of(flight);
    const uint64_t sequence = atomic_fetch_add(&signals->seen, 1) + 1u;
    lc_signal_entry *entry = &signals->kept[(sequence - 1u) % LC_SIGNALS_KEPT];
    const bool has_sender = is_sent(info);
    LC_RELEASE(entry->sequence, 0);
    memset(entry->command, 0, sizeof entry->command);
    LC_STORE(entry->number, (uint64_t)number);
    LC_STORE(entry->code, (uint64_t)(int64_t)info->si_code);
    LC_STORE(entry->pid, has_sender ? (uint64_t)info->si_pid : 0u);
    LC_STORE(entry->uid, has_sender ? (uint64_t)info->si_uid : 0u);
    LC_STORE(entry->at_ns, lc_now_ns());
    LC_STORE(entry->ends, ends);
    LC_STORE(entry->tid, (uint64_t)syscall(SYS_gettid));
    LC_STORE(entry->stack_over, is_stack_over(number, info, context));
    LC_RELEASE(entry->sequence, sequence);
}

static bool is_stalled(const lc_flight *flight)
{
    const uint64_t used = LC_ACQUIRE(flight->header->sections[LC_SECTION_SLOTS].used);
    for (uint64_t i = 0; i < used && i < LC_SLOT_COUNT; i++) {
        const lc_slot *slot = lc_flight_slot(flight, i);
        const uint64_t state = LC_ACQUIRE(slot->state);
        if ((state == LC_SLOT_OPEN || state == LC_SLOT_STALL) && LC_LOAD(slot->kind) != LC_ENDED_FAULT) {
            return true;
        }
    }
    return false;
}

/* Signal-safe. Of a fault awake: the evidence is to show what the thread did, and not that it sleeps here. */
static void wait_for_evidence(uint32_t question, bool is_fault)
{
    const uint64_t deadline = lc_now_ns() + (is_fault ? LC_FAULT_PATIENCE_NS : LC_SIGNAL_PATIENCE_NS);
    for (;;) {
        const uint32_t seen = atomic_load(&answered);
        if ((int32_t)(seen - question) >= 0) {
            return;
        }
        const bool is_rung = is_fault ? sched_yield() == 0 : lc_bell_wait(&answered, seen, deadline);
        if (!is_rung || lc_now_ns() >= deadline) {
            atomic_store(&unanswered, 1);
            return;
        }
    }
}

/* A program that is sent many would do nothing but wait: not for those of timers, nor for a watchdog that cannot answer. */
static bool is_waited_for(const lc_watchdog *w, const lc_flight *flight, const siginfo_t *info, bool is_fault)
{
    const bool is_wanted = is_fault || (is_sent(info) && is_stalled(flight));
    return is_wanted && lc_life_is(&w->life, LC_LIFE_RUNS) && !atomic_load(&unanswered);
}

static void note(int number, const siginfo_t *info, const void *context, bool ends)
{
    atomic_fetch_add(&inside, 1);
    lc_watchdog *w = atomic_load(&noted_by);
    if (w != NULL) {
        const lc_flight flight = *w->flight; /* the engine may stop from here on */
        put(&flight, number, info, context, ends);
        const bool is_fault = lc_signal_is_fault(number, info);
        if (is_fault) {
            atomic_store(&faulty, (uint64_t)syscall(SYS_gettid));
        }
        const uint32_t question = atomic_fetch_add(&asked, 1) + 1u;
        lc_bell_ring(&w->bell);
        if (is_waited_for(w, &flight, info, is_fault)) {
            wait_for_evidence(question, is_fault);
        }
    }
    atomic_fetch_sub(&inside, 1);
}

void lc_kill_signals_begin(lc_watchdog *w, uint64_t signals, const void *caller)
{
    if (signals != 0) {
        atomic_store(&unanswered, 0);
        atomic_store(&noted_by, w);
        lc_dispositions_begin(signals, note, caller);
        if (signals & LC_SIGNALS_FAULTS) {
            lc_fault_stacks_begin(caller);
        }
    }
}

bool lc_kill_signals_end(void)
{
    atomic_store(&noted_by, NULL);
    lc_dispositions_end();
    lc_fault_stacks_end();
    for (int tries = 0; atomic_load(&inside) != 0 && tries < LEAVE_TRIES; tries++) {
        (void)poll(NULL, 0, 1);
    }
    return atomic_load(&inside) == 0;
}

void lc_kill_signals_leave(void)
{
    atomic_store(&noted_by, NULL);
    atomic_store(&inside, 0); /* they are not here */
    lc_dispositions_leave();
}

/* Of the sender, while it lives: once, as its number may be another's later. */
static void name_sender(lc_signal_entry *entry, uint64_t sequence)
{
    char path[64], words[LC_COMMAND_BYTES];
    const uint64_t pid = LC_LOAD(entry->pid);
    if (pid == 0) {
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%llu/cmdline", (unsigned long long)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t bytes = file < 0 ? 0 : read(file, words, sizeof words - 1u);
    if (file >= 0) {
        close(file);
    }
    for (ssize_t i = 0; i < bytes && LC_ACQUIRE(entry->sequence) == sequence; i++) {
        entry->command[i] = words[i] != '\0' ? words[i] : i + 1 < bytes ? ' ' : '\0';
    }
}

static void name_senders(lc_signals *signals)
{
    const uint64_t seen = LC_ACQUIRE(signals->seen);
    const uint64_t oldest = seen > LC_SIGNALS_KEPT ? seen - LC_SIGNALS_KEPT : 0u;
    const uint64_t named = LC_LOAD(signals->named);
    for (uint64_t sequence = (named > oldest ? named : oldest) + 1u; sequence <= seen; sequence++) {
        lc_signal_entry *entry = &signals->kept[(sequence - 1u) % LC_SIGNALS_KEPT];
        if (LC_ACQUIRE(entry->sequence) == sequence) {
            name_sender(entry, sequence);
        }
    }
    LC_STORE(signals->named, seen);
}

/* When this thread's latest fault came; 0: others have taken its place since. */
static uint64_t fault_of(const lc_signals *signals, uint64_t tid)
{
    uint64_t at_ns = 0;
    for (uint64_t i = 0; i < LC_SIGNALS_KEPT; i++) {
        const lc_signal_entry *entry = &signals->kept[i];
        const bool is_its = LC_ACQUIRE(entry->sequence) != 0 && LC_LOAD(entry->tid) == tid;
        at_ns = is_its && LC_LOAD(entry->at_ns) > at_ns ? LC_LOAD(entry->at_ns) : at_ns;
    }
    return at_ns;
}

void lc_kill_signals_look(lc_watchdog *w)
{
    const uint32_t question = atomic_load(&asked);
    lc_dispositions_end_by_pending(lc_now_ns(), PENDING_NS);
    if (question == atomic_load(&answered) || atomic_load(&noted_by) != w) {
        return;
    }
    name_senders(signals_of(w->flight));
    const uint64_t tid = atomic_exchange(&faulty, 0);
    if (tid != 0) {
        lc_stall_watch_take_fault(w, tid, fault_of(signals_of(w->flight), tid));
        lc_stall_watch_take_threads(w, LC_LANE_COUNT);
    }
    for (uint64_t i = 0; i < LC_LANE_COUNT && is_stalled(w->flight); i++) {
        lc_stall_watch_take_threads(w, i);
    }
    atomic_store(&unanswered, 0);
    atomic_store(&answered, question);
    lc_bell_wake(&answered);
}

uint64_t lc_kill_signals_due(uint64_t now_ns) { return lc_dispositions_may_end() ? now_ns + LOOK_NS : LC_NO_DEADLINE; }
