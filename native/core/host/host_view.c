#include "core/host/host_view.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/clock/clock.h"
#include "core/host/proc_text.h"
#include "core/host/thread_view.h"
#include "core/lane/lane.h"

#define CGROUPS "/sys/fs/cgroup"
#define TEXT_BYTES 4096u

enum { PATH_BYTES = 512, ANCESTORS_MAX = 32 };

static size_t read_once(const char *path, char *text)
{
    lc_kept_file file = {0};
    const size_t length = lc_kept_file_open(&file, path) ? lc_kept_file_read(&file, text, TEXT_BYTES) : 0;
    lc_kept_file_close(&file);
    return length;
}

static bool open_in(lc_kept_file *file, const char *folder, const char *name)
{
    char path[PATH_BYTES + 64];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && lc_kept_file_open(file, path);
}

static bool has_quota(const char *folder, const char *name)
{
    char path[PATH_BYTES + 64];
    char text[TEXT_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && lc_parse_has_quota(text, read_once(path, text));
}

/* Cuts the last component off, down to `root` bytes; false: nothing is left to cut. */
static bool to_parent(char *folder, size_t root)
{
    char *slash = strrchr(folder, '/');
    if (slash == NULL || (size_t)(slash - folder) < root) {
        return false;
    }
    *slash = '\0';
    return strlen(folder) >= root;
}

/* Throttling happens, and is counted, where the quota is: in the process's own cgroup or further up. */
static void open_throttle(lc_host_view *view, const char *own, size_t root, const char *quota)
{
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", own);
    lc_kept_file *file = &view->files[LC_HOST_FILE_THROTTLE];
    for (int i = 0; i < ANCESTORS_MAX; i++) {
        if (has_quota(folder, quota)) {
            open_in(file, folder, "cpu.stat");
            return;
        }
        if (!to_parent(folder, root)) {
            break;
        }
    }
    open_in(file, own, "cpu.stat"); /* no quota can be seen from here */
}

/* The folder of the process's cgroup below `mount`. A container without a cgroup namespace reads the
 * host's path, which does not exist in it: then the root of `mount` is the container's own cgroup. False:
 * there is no such hierarchy. */
static bool own_folder(const char *text, size_t length, const char *mount, const char *controller,
                       const char *probe, char *folder)
{
    char path[PATH_BYTES / 2];
    lc_kept_file file = {0};
    if (!lc_parse_cgroup(text, length, controller, path, sizeof path)) {
        return false;
    }
    snprintf(folder, PATH_BYTES, "%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
    bool there = open_in(&file, folder, probe);
    if (!there) {
        snprintf(folder, PATH_BYTES, "%s", mount);
        there = open_in(&file, folder, probe);
    }
    lc_kept_file_close(&file);
    return there;
}

static void open_pressure(lc_host_view *view, const char *folder)
{
    static const struct {
        int file;
        const char *in_cgroup;
        const char *of_machine;
    } all[] = {
        {LC_HOST_FILE_PRESSURE_CPU, "cpu.pressure", "/proc/pressure/cpu"},
        {LC_HOST_FILE_PRESSURE_IO, "io.pressure", "/proc/pressure/io"},
        {LC_HOST_FILE_PRESSURE_MEMORY, "memory.pressure", "/proc/pressure/memory"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        lc_kept_file *file = &view->files[all[i].file];
        if (folder == NULL || !open_in(file, folder, all[i].in_cgroup)) {
            lc_kept_file_open(file, all[i].of_machine);
        }
    }
}

static void open_version_1(lc_host_view *view, const char *text, size_t length)
{
    static const char *const cpu_mounts[] = {CGROUPS "/cpu", CGROUPS "/cpu,cpuacct"};
    char folder[PATH_BYTES];
    for (size_t i = 0; i < sizeof cpu_mounts / sizeof *cpu_mounts; i++) {
        if (own_folder(text, length, cpu_mounts[i], "cpu", "cpu.stat", folder)) {
            open_throttle(view, folder, strlen(cpu_mounts[i]), "cpu.cfs_quota_us");
            break;
        }
    }
    if (own_folder(text, length, CGROUPS "/memory", "memory", "memory.usage_in_bytes", folder)) {
        open_in(&view->files[LC_HOST_FILE_USED], folder, "memory.usage_in_bytes");
    }
}

void lc_host_view_open(lc_host_view *view)
{
    char text[TEXT_BYTES];
    char folder[PATH_BYTES];
    if (view->is_open && lc_kept_file_is_ours(&view->files[LC_HOST_FILE_STAT])) {
        return;
    }
    lc_host_view_close(view);
    const size_t length = read_once("/proc/self/cgroup", text);
    lc_kept_file_open(&view->files[LC_HOST_FILE_STAT], "/proc/stat");
    lc_kept_file_open(&view->files[LC_HOST_FILE_MEMINFO], "/proc/meminfo");
    if (own_folder(text, length, CGROUPS, "", "cgroup.procs", folder)) {
        open_throttle(view, folder, strlen(CGROUPS), "cpu.max");
        open_in(&view->files[LC_HOST_FILE_USED], folder, "memory.current");
        open_pressure(view, folder);
    } else {
        open_version_1(view, text, length);
        open_pressure(view, NULL);
    }
    view->is_open = true;
}

static size_t read_file(const lc_host_view *view, int which, char *text)
{
    return lc_kept_file_read(&view->files[which], text, TEXT_BYTES);
}

static void tell(lc_host_entry *out, bool known, uint64_t bit) { out->told |= known ? bit : 0u; }

static void read_process(lc_host_entry *out)
{
    struct timespec cpu;
    struct rusage usage;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0) {
        out->process_cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
        out->told |= LC_HOST_PROCESS_CPU;
    }
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        out->process_major_faults = (uint64_t)usage.ru_majflt;
        out->told |= LC_HOST_MAJOR_FAULTS;
    }
}

static void read_system(const lc_host_view *view, char *text, lc_host_entry *out)
{
    lc_cpu_fields cpu;
    const long hertz = sysconf(_SC_CLK_TCK);
    if (hertz > 0 && lc_parse_cpu_line(text, read_file(view, LC_HOST_FILE_STAT, text), &cpu)) {
        const uint64_t tick_ns = 1000000000u / (uint64_t)hertz;
        out->system_busy_ns = cpu.busy_ticks * tick_ns;
        out->system_total_ns = cpu.total_ticks * tick_ns;
        out->system_stolen_ns = cpu.stolen_ticks * tick_ns;
        out->told |= LC_HOST_SYSTEM;
    }
}

void lc_host_view_read(lc_host_view *view, lc_host_entry *out)
{
    char text[TEXT_BYTES];
    lc_throttle_fields throttle;
    lc_host_view_open(view);
    memset(out, 0, sizeof *out);
    out->at_ns = lc_now_ns();
    read_process(out);
    read_system(view, text, out);
    if (lc_parse_throttle(text, read_file(view, LC_HOST_FILE_THROTTLE, text), &throttle)) {
        out->throttled_ns = throttle.ns;
        out->throttled_periods = throttle.periods;
        out->told |= LC_HOST_THROTTLED;
    }
    tell(out,
         lc_parse_pressure(text, read_file(view, LC_HOST_FILE_PRESSURE_CPU, text), &out->pressure_cpu_ns),
         LC_HOST_PRESSURE_CPU);
    tell(out, lc_parse_pressure(text, read_file(view, LC_HOST_FILE_PRESSURE_IO, text), &out->pressure_io_ns),
         LC_HOST_PRESSURE_IO);
    tell(out,
         lc_parse_pressure(text, read_file(view, LC_HOST_FILE_PRESSURE_MEMORY, text),
                           &out->pressure_memory_ns),
         LC_HOST_PRESSURE_MEMORY);
    tell(out,
         lc_parse_available(text, read_file(view, LC_HOST_FILE_MEMINFO, text), &out->memory_available_bytes),
         LC_HOST_AVAILABLE);
    tell(out, lc_parse_number(text, read_file(view, LC_HOST_FILE_USED, text), &out->memory_used_bytes),
         LC_HOST_USED);
    view->last = *out;
}

void lc_host_view_close(lc_host_view *view)
{
    for (int i = 0; i < LC_HOST_FILES; i++) {
        lc_kept_file_close(&view->files[i]);
    }
    view->is_open = false;
}

enum { YOUNG_NS = 100 * 1000 * 1000, EVERY_NS = 1000 * 1000 * 1000 };

/* Stores the reading with the stalled thread's own priority. */
static void put(lc_slot_writer *writer, const lc_host_entry *reading)
{
    lc_host_entry entry = *reading;
    lc_thread_priority(writer->slot->tid, &entry);
    lc_slot_put_host(writer, &entry);
}

static void read_into(lc_host_view *view, lc_slot_writer *writer)
{
    lc_host_entry now;
    lc_host_view_read(view, &now);
    put(writer, &now);
}

void lc_host_watch_during(lc_host_view *view, lc_slot_writer *writer, uint64_t now_ns)
{
    const lc_slot *slot = writer->slot;
    const uint64_t count = LC_LOAD(slot->host_count);
    if (count == 0) {
        writer->host_interval_ns = EVERY_NS;
        if (view->last.at_ns != 0 && now_ns < view->last.at_ns + YOUNG_NS) {
            put(writer, &view->last);
        } else {
            read_into(view, writer);
        }
    } else if (now_ns >= slot->hosts[count - 1u].at_ns + writer->host_interval_ns) {
        read_into(view, writer);
    }
}

void lc_host_watch_at_end(lc_host_view *view, lc_slot_writer *writer, uint64_t begin_ns)
{
    /* A stall that was never seen while it lasted: what was read shortly before it is its first reading. */
    if (LC_LOAD(writer->slot->host_count) == 0 && view->last.at_ns != 0 &&
        view->last.at_ns + EVERY_NS > begin_ns) {
        put(writer, &view->last);
    }
    read_into(view, writer);
}
