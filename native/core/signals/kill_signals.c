#include "core/signals/kill_signals.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/signals/disposition.h"
#include "core/watchdog/stall_watch.h"

enum { LEAVE_TRIES = 200 };

static _Atomic(lc_watchdog *) noted_by; /* NULL: nothing is noted */
static lc_bell asked, answered;         /* how many signals came; how many the watchdog has dealt with */
static _Atomic uint32_t inside;         /* handlers that touch the watchdog or its flight file */

static lc_signals *signals_of(const lc_flight *flight)
{
    return (lc_signals *)((char *)flight->header + LC_SIGNALS_OFFSET);
}

static void put(const lc_flight *flight, int number, const siginfo_t *info, bool ends)
{
    lc_signals *signals = signals_of(flight);
    const uint64_t sequence = atomic_fetch_add(&signals->seen, 1) + 1u;
    lc_signal_entry *entry = &signals->kept[(sequence - 1u) % LC_SIGNALS_KEPT];
    const bool is_sent = info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
    LC_RELEASE(entry->sequence, 0);
    memset(entry->command, 0, sizeof entry->command);
    LC_STORE(entry->number, (uint64_t)number);
    LC_STORE(entry->code, (uint64_t)(int64_t)info->si_code);
    LC_STORE(entry->pid, is_sent ? (uint64_t)info->si_pid : 0u);
    LC_STORE(entry->uid, is_sent ? (uint64_t)info->si_uid : 0u);
    LC_STORE(entry->at_ns, lc_now_ns());
    LC_STORE(entry->ends, ends);
    LC_RELEASE(entry->sequence, sequence);
}

static bool is_stalled(const lc_flight *flight)
{
    const uint64_t used = LC_ACQUIRE(flight->header->sections[LC_SECTION_SLOTS].used);
    for (uint64_t i = 0; i < used && i < LC_SLOT_COUNT; i++) {
        const uint64_t state = LC_ACQUIRE(lc_flight_slot(flight, i)->state);
        if (state == LC_SLOT_OPEN || state == LC_SLOT_STALL) {
            return true;
        }
    }
    return false;
}

/* Signal-safe. */
static void wait_for_evidence(uint32_t question)
{
    const uint64_t deadline = lc_now_ns() + LC_SIGNAL_PATIENCE_NS;
    for (;;) {
        const uint32_t seen = atomic_load(&answered);
        if ((int32_t)(seen - question) >= 0 || !lc_bell_wait(&answered, seen, deadline) || lc_now_ns() >= deadline) {
            return;
        }
    }
}

static void note(int number, const siginfo_t *info, bool ends)
{
    atomic_fetch_add(&inside, 1);
    lc_watchdog *w = atomic_load(&noted_by);
    if (w != NULL) {
        const lc_flight flight = *w->flight; /* the engine may stop from here on */
        put(&flight, number, info, ends);
        const uint32_t question = atomic_fetch_add(&asked, 1) + 1u;
        lc_bell_ring(&w->bell);
        if (is_stalled(&flight)) {
            wait_for_evidence(question);
        }
    }
    atomic_fetch_sub(&inside, 1);
}

void lc_kill_signals_begin(lc_watchdog *w, uint64_t signals, const void *caller)
{
    if (signals != 0) {
        atomic_store(&noted_by, w);
        lc_dispositions_begin(signals, note, caller);
    }
}

bool lc_kill_signals_end(void)
{
    if (atomic_exchange(&noted_by, NULL) == NULL) {
        return true;
    }
    lc_dispositions_end();
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

/* Of the sender, while it lives. */
static void name_sender(lc_signal_entry *entry)
{
    char path[64], words[LC_COMMAND_BYTES];
    const uint64_t pid = LC_LOAD(entry->pid);
    if (pid == 0 || entry->command[0] != '\0') {
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%llu/cmdline", (unsigned long long)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? 0 : read(file, words, sizeof words - 1u);
    if (file >= 0) {
        close(file);
    }
    for (ssize_t i = 0; i < bytes; i++) {
        entry->command[i] = words[i] != '\0' ? words[i] : i + 1 < bytes ? ' ' : '\0';
    }
}

void lc_kill_signals_look(lc_watchdog *w)
{
    const uint32_t question = atomic_load(&asked);
    if (question == atomic_load(&answered) || atomic_load(&noted_by) != w) {
        return;
    }
    lc_signals *signals = signals_of(w->flight);
    for (uint32_t i = 0; i < LC_SIGNALS_KEPT; i++) {
        if (LC_ACQUIRE(signals->kept[i].sequence) != 0) {
            name_sender(&signals->kept[i]);
        }
    }
    for (uint64_t i = 0; i < LC_LANE_COUNT && is_stalled(w->flight); i++) {
        lc_stall_watch_take_threads(w, i);
    }
    atomic_store(&answered, question);
    lc_bell_wake(&answered);
}
