#include "core/host/thread_view.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock/clock.h"

static const char *const file_names[LC_VIEW_FILES] = {"schedstat", "syscall", "stat", "status"};

static bool open_task_file(lc_kept_file *file, uint64_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%llu/%s", (unsigned long long)tid, name);
    return lc_kept_file_open(file, path);
}

void lc_thread_view_open(lc_thread_view *view, uint64_t tid)
{
    memset(view, 0, sizeof *view);
    view->tid = tid;
    for (int i = 0; i < LC_VIEW_FILES; i++) {
        const bool is_open = open_task_file(&view->files[i], tid, file_names[i]);
        view->error = i == LC_VIEW_SYSCALL && !is_open ? errno : view->error;
    }
}

void lc_thread_view_close(lc_thread_view *view)
{
    for (int i = 0; i < LC_VIEW_FILES; i++) {
        lc_kept_file_close(&view->files[i]);
    }
    view->tid = 0;
}

static bool same_call(const lc_thread_view *view, const char *text, size_t length)
{
    return length != 0 && length == view->call_bytes && memcmp(text, view->call, length) == 0;
}

static void read_switches(const lc_thread_view *view, lc_switch_fields *out)
{
    char text[2048];
    (void)lc_parse_switches(text, lc_kept_file_read(&view->files[LC_VIEW_STATUS], text, sizeof text), out);
}

static bool read_sched(const lc_thread_view *view, lc_schedstat_fields *out)
{
    char text[128];
    return lc_parse_schedstat(text, lc_kept_file_read(&view->files[LC_VIEW_SCHEDSTAT], text, sizeof text),
                              out);
}

static bool read_stat(const lc_thread_view *view, lc_stat_fields *out)
{
    char text[1024];
    return lc_parse_stat(text, lc_kept_file_read(&view->files[LC_VIEW_STAT], text, sizeof text), out);
}

/* Keeps a reading for as long as the thread does not run. */
static void keep(lc_thread_view *view, uint64_t cpu_ns, const char *text, size_t length,
                 const lc_thread_reading *reading)
{
    uint64_t now_ns = 0;
    const bool stood = cpu_ns != 0 && reading->complete && !lc_syscall_says_running(text, length) &&
                       lc_thread_cpu_ns((uint32_t)view->tid, &now_ns) && now_ns == cpu_ns;
    view->last = *reading;
    view->last_cpu_ns = stood ? cpu_ns : 0;
    view->call_bytes = (uint32_t)length;
    memcpy(view->call, text, length);
}

void lc_thread_view_read(lc_thread_view *view, uint64_t cpu_ns, bool whole, lc_thread_reading *out)
{
    char text[LC_SYSCALL_TEXT_MAX];
    memset(out, 0, sizeof *out);
    out->syscall.number = LC_SYSCALL_UNKNOWN;
    if (view->tid == 0) {
        return;
    }
    if (!lc_kept_file_is_ours(&view->files[LC_VIEW_STAT])) { /* the program closed what it did not open */
        const uint64_t tid = view->tid;
        lc_thread_view_close(view);
        lc_thread_view_open(view, tid);
    }
    /* What changes fastest first: the call the thread sleeps in, then its times. */
    const size_t length = lc_kept_file_read(&view->files[LC_VIEW_SYSCALL], text, sizeof text);
    if (cpu_ns != 0 && cpu_ns == view->last_cpu_ns && same_call(view, text, length)) {
        if (whole && view->last.switches.voluntary == 0) { /* it sleeps: it has switched */
            read_switches(view, &view->last.switches);
        }
        *out = view->last;
        return;
    }
    if (!lc_parse_syscall(text, length, &out->syscall)) {
        out->syscall.number = LC_SYSCALL_UNKNOWN;
    }
    out->complete = read_sched(view, &out->sched);
    if (lc_syscall_says_running(text, length) && view->last.complete && !whole) {
        out->stat = view->last.stat;
        out->stat.state = 'R';
    } else {
        out->complete &= read_stat(view, &out->stat);
    }
    if (whole) {
        read_switches(view, &out->switches);
    }
    keep(view, cpu_ns, text, length, out);
}

bool lc_thread_view_in_call(const lc_thread_view *view, const lc_syscall_fields *call)
{
    char text[512];
    lc_syscall_fields now;
    return view->tid != 0 &&
           lc_parse_syscall(text, lc_kept_file_read(&view->files[LC_VIEW_SYSCALL], text, sizeof text),
                            &now) &&
           memcmp(&now, call, sizeof now) == 0;
}

static size_t read_once(uint64_t tid, const char *name, char *text, size_t room)
{
    lc_kept_file file;
    const size_t length = open_task_file(&file, tid, name) ? lc_kept_file_read(&file, text, room) : 0;
    lc_kept_file_close(&file);
    return length;
}

char lc_thread_state_letter(uint64_t tid)
{
    char text[1024];
    lc_stat_fields fields;
    return lc_parse_stat(text, read_once(tid, "stat", text, sizeof text), &fields) ? fields.state : 0;
}

lc_syscall_fields lc_thread_call(uint64_t tid)
{
    char text[LC_SYSCALL_TEXT_MAX];
    lc_syscall_fields call;
    if (!lc_parse_syscall(text, read_once(tid, "syscall", text, sizeof text), &call)) {
        call = (lc_syscall_fields){.number = LC_SYSCALL_UNKNOWN};
    }
    return call;
}

void lc_thread_priority(uint64_t tid, lc_host_entry *out)
{
    cpu_set_t may;
    errno = 0; /* -1 is a nice value */
    const int nice = getpriority(PRIO_PROCESS, (id_t)tid);
    /* musl refuses the call */
    const int policy = errno == 0 ? (int)syscall(SYS_sched_getscheduler, (pid_t)tid) : -1;
    const bool is_known = policy >= 0;
    out->nice = is_known ? nice : 0;
    out->policy = is_known ? (uint16_t)policy : 0;
    /* More cores than the set has room for: an error. */
    out->cores =
        is_known && sched_getaffinity((pid_t)tid, sizeof may, &may) == 0 ? (uint16_t)CPU_COUNT(&may) : 0;
    out->told = is_known ? out->told | LC_HOST_PRIORITY : out->told & ~(uint64_t)LC_HOST_PRIORITY;
}

struct directory_entry { /* struct linux_dirent64 of getdents(2) */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* opendir would allocate. */
void lc_thread_list_read(lc_thread_list *out)
{
    out->at = out->length = 0;
    const int fd = lc_open_unnoticed("/proc/self/task", O_DIRECTORY);
    if (fd < 0) {
        return;
    }
    char rest[256];
    const long got = syscall(SYS_getdents64, fd, out->entries, sizeof out->entries);
    const bool all = got > 0 && syscall(SYS_getdents64, fd, rest, sizeof rest) == 0;
    lc_close_unnoticed(fd);
    out->length = all ? (uint32_t)got : 0;
}

uint64_t lc_thread_list_next(lc_thread_list *list)
{
    uint64_t tid = 0; /* also of "." and "..", which name no thread */
    while (tid == 0 && list->at + offsetof(struct directory_entry, name) < list->length) {
        const struct directory_entry *entry = (const void *)(list->entries + list->at);
        tid = strtoull(entry->name, NULL, 10);
        list->at = entry->bytes == 0 ? list->length : list->at + entry->bytes;
    }
    return tid;
}
