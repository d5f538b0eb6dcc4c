/* What the kernel says of the process, its cgroup and the machine, through descriptors that stay open between readings.
 *
 * About 25 us a reading where cgroups and pressure are told; more on machines with many cores, whose /proc/stat the kernel
 * writes a file in full whatever part is read. So the watchdog reads seldom: see stall_watch.c. The watchdog's thread only.
 */
#ifndef LOOPCANARY_HOST_VIEW_H
#define LOOPCANARY_HOST_VIEW_H

#include "core/flight/flight_format.h"
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

/* Gives the descriptors back. */
void lc_host_view_close(lc_host_view *view);

#endif
