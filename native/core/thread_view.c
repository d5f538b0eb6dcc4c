#include "thread_view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flight_format.h"
#include "thread_clock.h"

static const char *const file_names[LC_VIEW_FILES] = {"schedstat", "syscall", "stat", "status"};

static int open_task_file(uint64_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%llu/%s", (unsigned long long)tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static uint64_t inode_of(int fd)
{
    struct stat facts;
    return fstat(fd, &facts) == 0 ? (uint64_t)facts.st_ino : 0;
}

void lc_thread_view_open(lc_thread_view *view, uint64_t tid)
{
    memset(view, 0, sizeof *view);
    view->tid = tid;
    for (int i = 0; i < LC_VIEW_FILES; i++) {
        view->fds[i] = open_task_file(tid, file_names[i]);
        view->inodes[i] = view->fds[i] < 0 ? 0 : inode_of(view->fds[i]);
    }
}

void lc_thread_view_close(lc_thread_view *view)
{
    if (view->tid == 0) {
        return;
    }
    for (int i = 0; i < LC_VIEW_FILES; i++) {
        /* A program that closes all descriptors (daemons do) may have reused the number. */
        if (view->fds[i] >= 0 && inode_of(view->fds[i]) == view->inodes[i]) {
            close(view->fds[i]);
        }
        view->fds[i] = -1;
    }
    view->tid = 0;
}

static size_t read_whole(int fd, char *text, size_t room)
{
    const ssize_t got = fd < 0 ? -1 : pread(fd, text, room, 0);
    return got < 0 ? 0 : (size_t)got;
}

static bool same_call(const lc_thread_view *view, const char *text, size_t length)
{
    return length != 0 && length == view->call_bytes && memcmp(text, view->call, length) == 0;
}

static void read_switches(const lc_thread_view *view, lc_switch_fields *out)
{
    char text[2048];
    (void)lc_parse_switches(text, read_whole(view->fds[LC_VIEW_STATUS], text, sizeof text), out);
}

static bool read_sched(const lc_thread_view *view, lc_schedstat_fields *out)
{
    char text[128];
    return lc_parse_schedstat(text, read_whole(view->fds[LC_VIEW_SCHEDSTAT], text, sizeof text), out);
}

static bool read_stat(const lc_thread_view *view, lc_stat_fields *out)
{
    char text[1024];
    return lc_parse_stat(text, read_whole(view->fds[LC_VIEW_STAT], text, sizeof text), out);
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
    /* What changes fastest first: the call the thread sleeps in, then its times. */
    const size_t length = read_whole(view->fds[LC_VIEW_SYSCALL], text, sizeof text);
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
           lc_parse_syscall(text, read_whole(view->fds[LC_VIEW_SYSCALL], text, sizeof text), &now) &&
           memcmp(&now, call, sizeof now) == 0;
}

char lc_thread_state_letter(uint64_t tid)
{
    char text[1024];
    lc_stat_fields fields;
    const int fd = open_task_file(tid, "stat");
    if (fd < 0) {
        return 0;
    }
    const size_t length = read_whole(fd, text, sizeof text);
    close(fd);
    return lc_parse_stat(text, length, &fields) ? fields.state : 0;
}
