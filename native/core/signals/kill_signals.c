#include "core/signals/kill_signals.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <ucontext.h>

#include "core/signals/disposition.h"
#include "core/waits/wait_target.h"

enum { LEAVE_TRIES = 200, PENDING_NS = 250 * 1000 * 1000, LOOK_NS = 500 * 1000 * 1000 };

static _Atomic(lc_watchdog *) noted_by; /* NULL: nothing is noted */
static lc_bell asked, answered;         /* how many signals came; how many the watchdog has dealt with */
static _Atomic uint32_t unanswered;     /* 1: a handler waited in vain, and nothing was answered since */
static _Atomic uint32_t inside;         /* handlers that touch the watchdog or its flight file */
static _Atomic uint64_t faulty;         /* the thread that has caused the latest fault; 0: it was looked at */
static _Atomic uint64_t handled;        /* faults that a handler of the program's got, a bit each */

static lc_signals *signals_of(lc_header *header)
{
    return (lc_signals *)((char *)header + LC_SIGNALS_OFFSET);
}

/* By a process, and not by the kernel or a timer. */
static bool is_sent(const siginfo_t *info)
{
    return info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
}

static uint64_t stack_pointer(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uint64_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return context->uc_mcontext.sp;
#endif
}

/* A call, or a function's own frame, touches memory beside the stack pointer. A jump to code on a stack,
 * which may not be executed, does not. */
static bool is_stack_over(int number, const siginfo_t *info, const ucontext_t *context)
{
    enum { BELOW = 4096, ABOVE = 64 * 1024 };
#if defined(__x86_64__)
    const uint64_t code = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    const uint64_t code = context->uc_mcontext.pc;
#endif
    const uint64_t pointer = stack_pointer(context);
    const uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    return number == SIGSEGV && lc_signal_is_fault(number, info) && address != code &&
           address + BELOW >= pointer && address < pointer + ABOVE;
}

static uint64_t stack_of(int number, const siginfo_t *info, const ucontext_t *context)
{
    const uint64_t over = is_stack_over(number, info, context) ? LC_STACK_OVER : 0u;
    const uint64_t below = stack_pointer(context) - (uint64_t)(uintptr_t)context->uc_stack.ss_sp;
    return over | (below < context->uc_stack.ss_size ? LC_STACK_ALTERNATE : 0u);
}

static void put(lc_header *header, int number, const siginfo_t *info, const void *context, bool ends)
{
    lc_signals *signals = signals_of(header);
    const uint64_t sequence = atomic_fetch_add(&signals->seen, 1) + 1u;
    lc_signal_entry *entry = &signals->kept[(sequence - 1u) % LC_SIGNALS_KEPT];
    const bool has_sender = is_sent(info);
    LC_STORE(entry->sequence, 0);
    atomic_thread_fence(memory_order_release);
    memset(entry->command, 0, sizeof entry->command);
    LC_STORE(entry->number, (uint64_t)number);
    LC_STORE(entry->code, (uint64_t)(int64_t)info->si_code);
    LC_STORE(entry->pid, has_sender ? (uint64_t)info->si_pid : 0u);
    LC_STORE(entry->uid, has_sender ? (uint64_t)info->si_uid : 0u);
    LC_STORE(entry->at_ns, lc_now_ns());
    LC_STORE(entry->ends, ends);
    LC_STORE(entry->tid, (uint64_t)syscall(SYS_gettid));
    LC_STORE(entry->stack, stack_of(number, info, context));
    LC_RELEASE(entry->sequence, sequence);
}

static bool is_stalled(const lc_header *header)
{
    const lc_section *slots = &header->sections[LC_SECTION_SLOTS];
    const uint64_t used = LC_ACQUIRE(slots->used);
    for (uint64_t i = 0; i < used && i < LC_SLOT_COUNT; i++) {
        const lc_slot *slot = (const lc_slot *)((const char *)header + slots->offset + i * slots->stride);
        const uint64_t state = LC_ACQUIRE(slot->state);
        if ((state == LC_SLOT_OPEN || state == LC_SLOT_STALL) && LC_LOAD(slot->kind) != LC_ENDED_FAULT) {
            return true;
        }
    }
    return false;
}

/* Signal-safe. Of a fault awake: the evidence is to show what the thread did, and not that it sleeps here. */
static void wait_for_evidence(const lc_watchdog *w, uint32_t question, bool is_fault)
{
    const uint64_t deadline =
        lc_now_ns() + (is_fault ? w->settings.fault_patience_ns : w->settings.signal_patience_ns);
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

/* A program that is sent many would do nothing but wait: not for those of timers, nor for a watchdog that
 * cannot answer. */
static bool is_waited_for(const lc_watchdog *w, const lc_header *header, const siginfo_t *info, bool is_fault)
{
    const bool is_wanted = is_fault || (is_sent(info) && is_stalled(header));
    return is_wanted && lc_life_is(&w->life, LC_LIFE_RUNS) && !atomic_load(&unanswered);
}

/* A second fault comes to a handler that has mended the first: runtimes cause them as part of their work,
 * thousands in a second. The one that such a handler passes on to the default action comes once more, and
 * ends the process. */
static bool is_mended(int number, bool ends)
{
    return !ends && (atomic_fetch_or(&handled, LC_SIGNAL_BIT(number)) & LC_SIGNAL_BIT(number)) != 0;
}

/* On the program's stack, which may be an alternate one of a few kilobytes: nothing large is put there. */
static void note(int number, const siginfo_t *info, const void *context, bool ends)
{
    atomic_fetch_add(&inside, 1);
    lc_watchdog *w = atomic_load(&noted_by);
    const bool is_fault = lc_signal_is_fault(number, info);
    if (w != NULL && !(is_fault && is_mended(number, ends))) {
        lc_header *header = w->flight->header; /* the engine may stop from here on; its pages stay */
        put(header, number, info, context, ends);
        if (is_fault) {
            atomic_store(&faulty, (uint64_t)syscall(SYS_gettid));
        }
        const uint32_t question = atomic_fetch_add(&asked, 1) + 1u;
        lc_bell_ring(&w->bell);
        if (is_waited_for(w, header, info, is_fault)) {
            wait_for_evidence(w, question, is_fault);
        }
    }
    atomic_fetch_sub(&inside, 1);
}

void lc_kill_signals_begin(lc_watchdog *w, uint64_t signals, const void *caller)
{
    if (signals != 0) {
        atomic_store(&unanswered, 0);
        atomic_store(&handled, 0);
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

/* Notes the command of the sender while it lives; once only, as its PID may be another process's later. */
static void name_sender(lc_signal_entry *entry)
{
    char words[LC_COMMAND_BYTES] = "";
    (void)lc_process_command(LC_LOAD(entry->pid), words, sizeof words - 1u);
    memcpy(entry->command, words, sizeof words);
}

static void name_senders(lc_signals *signals)
{
    const uint64_t seen = LC_ACQUIRE(signals->seen);
    const uint64_t oldest = seen > LC_SIGNALS_KEPT ? seen - LC_SIGNALS_KEPT : 0u;
    const uint64_t named = LC_LOAD(signals->named);
    for (uint64_t sequence = (named > oldest ? named : oldest) + 1u; sequence <= seen; sequence++) {
        lc_signal_entry *entry = &signals->kept[(sequence - 1u) % LC_SIGNALS_KEPT];
        if (LC_ACQUIRE(entry->sequence) == sequence) {
            name_sender(entry);
        }
        /* A later signal may be there by now, whose number is not among these: readers leave its command
         * alone. */
        LC_RELEASE(signals->named, sequence);
    }
}

static bool is_fault_of(const lc_signal_entry *entry, uint64_t tid)
{
    const siginfo_t info = {.si_code = (int)LC_LOAD(entry->code)};
    return LC_ACQUIRE(entry->sequence) != 0 && LC_LOAD(entry->tid) == tid &&
           lc_signal_is_fault((int)LC_LOAD(entry->number), &info);
}

/* When this thread's latest fault came, of those outside of handlers if there is one: what a crash reporter
 * causes comes of the one that it reports. 0: others have taken its place since. */
static uint64_t fault_of(const lc_signals *signals, uint64_t tid)
{
    uint64_t at_ns = 0, in_handler_ns = 0;
    for (uint64_t i = 0; i < LC_SIGNALS_KEPT; i++) {
        const lc_signal_entry *entry = &signals->kept[i];
        if (is_fault_of(entry, tid)) {
            uint64_t *latest = LC_LOAD(entry->stack) & LC_STACK_ALTERNATE ? &in_handler_ns : &at_ns;
            *latest = LC_LOAD(entry->at_ns) > *latest ? LC_LOAD(entry->at_ns) : *latest;
        }
    }
    return at_ns != 0 ? at_ns : in_handler_ns;
}

void lc_kill_signals_look(lc_watchdog *w)
{
    const uint32_t question = atomic_load(&asked);
    lc_dispositions_end_by_pending(lc_now_ns(), PENDING_NS);
    if (question == atomic_load(&answered) || atomic_load(&noted_by) != w) {
        return;
    }
    name_senders(signals_of(w->flight->header));
    const uint64_t tid = atomic_exchange(&faulty, 0);
    if (tid != 0) {
        lc_stall_watch_take_fault(w, tid, fault_of(signals_of(w->flight->header), tid));
        lc_stall_watch_take_threads(w, LC_WATCH_FAULT);
    }
    for (uint64_t i = 0; i < LC_LANE_COUNT && is_stalled(w->flight->header); i++) {
        lc_stall_watch_take_threads(w, i);
    }
    atomic_store(&unanswered, 0);
    atomic_store(&answered, question);
    lc_bell_wake(&answered);
}

uint64_t lc_kill_signals_due(uint64_t now_ns)
{
    return lc_dispositions_may_end() ? now_ns + LOOK_NS : LC_NO_DEADLINE;
}
