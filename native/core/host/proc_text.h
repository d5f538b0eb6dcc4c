/* The texts of /proc as numbers. Pure: bytes in, values out; hostile text is refused, not followed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char state;
    uint64_t major_faults;
    uint64_t start_time;
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
