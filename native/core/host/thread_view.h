/* What the kernel says of one thread of this process, from /proc/self/task/TID, through descriptors that
 * stay open between samples (pread: 1 to 3 us each). The watchdog's thread only.
 *
 * What cannot have changed is not read again: a thread that did not run since the last reading has the
 * state, the times and the faults that it had; it may have been woken, which `syscall` tells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/flight/flight_format.h"
#include "core/host/kept_file.h"
#include "core/host/proc_text.h"

enum { LC_VIEW_SCHEDSTAT, LC_VIEW_SYSCALL, LC_VIEW_STAT, LC_VIEW_STATUS, LC_VIEW_FILES };

typedef struct {
    lc_schedstat_fields sched;
    lc_syscall_fields syscall;
    lc_stat_fields stat;
    lc_switch_fields switches; /* zeros where not asked for */
    bool complete;             /* false: what could not be read is zero or "unknown" */
} lc_thread_reading;

#define LC_SYSCALL_TEXT_MAX 256u

typedef struct {
    uint64_t tid; /* 0: closed */
    lc_kept_file files[LC_VIEW_FILES];
    int error; /* why `syscall` could not be opened, as errno; 0: it was */
    lc_thread_reading last;
    uint64_t last_cpu_ns; /* the thread's CPU time, if it did not run during the last reading; else 0 */
    uint32_t call_bytes;  /* of the last text of `syscall` */
    char call[LC_SYSCALL_TEXT_MAX];
} lc_thread_view;

/* Opens the files of thread `tid`; files that cannot be opened read as unknown. */
void lc_thread_view_open(lc_thread_view *view, uint64_t tid);
void lc_thread_view_close(lc_thread_view *view);

/* `cpu_ns`: the thread's CPU time, if it was just seen not to run; 0 if not. `whole`: also what changes
 * seldom: the context switches, which cost 6 us more (the kernel formats all of `status`), and a running
 * thread's page faults, which are otherwise those of the last reading that had them. */
void lc_thread_view_read(lc_thread_view *view, uint64_t cpu_ns, bool whole, lc_thread_reading *out);

/* Whether the thread sleeps in this very call now: same number, same arguments. One pread. */
bool lc_thread_view_in_call(const lc_thread_view *view, const lc_syscall_fields *call);

/* State letter of any thread of this process, opened and closed on the spot; 0 unknown. */
char lc_thread_state_letter(uint64_t tid);

/* How the kernel schedules any thread of this process: into nice, policy, cores and `told`, with system
 * calls that do not block. */
void lc_thread_priority(uint64_t tid, lc_host_entry *out);

/* The call that any thread of this process sleeps in, likewise; its number is LC_SYSCALL_UNKNOWN if that
 * cannot be told. */
lc_syscall_fields lc_thread_call(uint64_t tid);

/* ---- the threads of this process, as the kernel lists them ---------------------------- */

typedef struct {
    uint32_t at, length; /* length 0: they could not be listed, or do not fit: more than some 120 */
    _Alignas(8) char entries[4096];
} lc_thread_list;

/* No allocation, no lock. */
void lc_thread_list_read(lc_thread_list *out);
/* The next one's id; 0: there is no other. */
uint64_t lc_thread_list_next(lc_thread_list *list);
