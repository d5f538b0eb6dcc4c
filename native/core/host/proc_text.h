/* The texts of /proc as numbers. Pure: bytes in, values out; hostile text is refused, not followed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name; /* in the text */
    size_t name_length;
    char state;
    uint64_t parent;
    uint64_t major_faults;
    uint64_t start_time;
    uint64_t exit_signal; /* 0: none, or not told */
} lc_stat_fields;

/* /proc/PID/stat and /proc/PID/task/TID/stat. The command name may hold blanks and parentheses. */
bool lc_parse_stat(const char *text, size_t length, lc_stat_fields *out);

typedef struct {
    uint64_t on_cpu_ns;
    uint64_t run_queue_ns;
} lc_schedstat_fields;

/* /proc/PID/task/TID/schedstat: "on-cpu-ns run-queue-ns slices". */
bool lc_parse_schedstat(const char *text, size_t length, lc_schedstat_fields *out);

typedef struct {
    int64_t number; /* LC_SYSCALL_RUNNING: on a CPU or outside any call */
    uint64_t args[6];
} lc_syscall_fields;

/* /proc/PID/task/TID/syscall: "running", "-1 sp pc", or "number 0xarg ... 0xsp 0xpc". */
bool lc_parse_syscall(const char *text, size_t length, lc_syscall_fields *out);

/* Whether that file says that the thread is on a CPU or ready for one: its state letter is R. (A thread that
 * sleeps outside of any call, for a page or stopped, is told as number -1.) */
bool lc_syscall_says_running(const char *text, size_t length);

typedef struct {
    uint64_t voluntary;
    uint64_t involuntary;
} lc_switch_fields;

/* The two *_ctxt_switches lines of /proc/PID/task/TID/status. */
bool lc_parse_switches(const char *text, size_t length, lc_switch_fields *out);

/* ---- machine and container --------------------------------------------------------------------------
 *
 * The texts of /proc, PSI and cgroups about machine and container, as numbers. Pure: bytes in, values out;
 * what is not understood counts as not given. */

typedef struct {
    uint64_t busy_ticks; /* of the kernel's USER_HZ, all cores; without idle and iowait */
    uint64_t total_ticks;
    uint64_t stolen_ticks; /* of the busy ones */
} lc_cpu_fields;

/* First line of /proc/stat: "cpu  user nice system idle iowait irq softirq steal guest guest_nice".
 * Guest time is within user's; kernels tell at least the first four. */
bool lc_parse_cpu_line(const char *text, size_t length, lc_cpu_fields *out);

typedef struct {
    uint64_t periods; /* nr_throttled */
    uint64_t ns;      /* throttled_usec (v2) or throttled_time (v1, nanoseconds) */
} lc_throttle_fields;

/* cpu.stat of a cgroup; the root's of version 2 has no throttling: false. */
bool lc_parse_throttle(const char *text, size_t length, lc_throttle_fields *out);

/* *.pressure: `total` of the line `some`, in nanoseconds. */
bool lc_parse_pressure(const char *text, size_t length, uint64_t *total_ns);

/* MemAvailable of /proc/meminfo, in bytes. */
bool lc_parse_available(const char *text, size_t length, uint64_t *bytes);

/* One number on one line (memory.current). */
bool lc_parse_number(const char *text, size_t length, uint64_t *value);

/* Whether cpu.max (v2: "max 100000") or cpu.cfs_quota_us (v1: "-1") sets a limit. */
bool lc_parse_has_quota(const char *text, size_t length);

/* /proc/self/cgroup: path of the controller's hierarchy ("" for version 2's "0::"), without the line's
 * end. False: the process is in none, or the path does not fit. `controller`: "cpu", "memory". */
bool lc_parse_cgroup(const char *text, size_t length, const char *controller, char *path, size_t room);
