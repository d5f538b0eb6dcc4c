/* What the kernel says of the process, its cgroup and the machine, through descriptors that stay open
 * between readings.
 *
 * A reading takes about 25 us with cgroups and pressure, and more on machines with many cores: the kernel
 * formats all of /proc/stat, whatever part of it is read. So the watchdog reads seldom (stall_watch.c). The
 * watchdog's thread only. */
#pragma once

#include "core/flight/slot_writer.h"
#include "core/host/kept_file.h"

enum {
    LC_HOST_FILE_STAT,
    LC_HOST_FILE_MEMINFO,
    LC_HOST_FILE_THROTTLE,
    LC_HOST_FILE_USED,
    LC_HOST_FILE_PRESSURE_CPU,
    LC_HOST_FILE_PRESSURE_IO,
    LC_HOST_FILE_PRESSURE_MEMORY,
    LC_HOST_FILES
};

typedef struct {
    bool is_open; /* what could be opened was */
    lc_kept_file files[LC_HOST_FILES];
    lc_host_entry last; /* at_ns 0: none yet */
} lc_host_view;

/* Opens the files, where they are not open or the program closed them. */
void lc_host_view_open(lc_host_view *view);

/* Reads all there is; opens the files first. A value that the kernel does not give has no bit in `told`.
 * Also kept in view->last. */
void lc_host_view_read(lc_host_view *view, lc_host_entry *out);

void lc_host_view_close(lc_host_view *view);

/* For a stall the host is looked at as its slot is opened, every second of a long stall, and at its end.
 *
 * The stall goes on: takes the first reading, or the next one where it is due. The first may be an earlier
 * one that is no more than a tenth of a second old: a program whose callbacks are all a little long opens
 * slots all the time. */
void lc_host_watch_during(lc_host_view *view, lc_slot_writer *writer, uint64_t now_ns);

/* The stall, which began at `begin_ns`, is over. */
void lc_host_watch_at_end(lc_host_view *view, lc_slot_writer *writer, uint64_t begin_ns);
