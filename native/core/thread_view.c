#include "thread_view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flight_format.h"

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

void lc_thread_view_read(const lc_thread_view *view, bool with_switches, lc_thread_reading *out)
{
    char text[2048];
    memset(out, 0, sizeof *out);
    out->syscall.number = LC_SYSCALL_UNKNOWN;
    if (view->tid == 0) {
        return;
    }
    const int *fds = view->fds;
    /* What changes fastest first: the call the thread sleeps in, then its times. */
    const bool syscall_ok = lc_parse_syscall(
        text, read_whole(fds[LC_VIEW_SYSCALL], text, sizeof text), &out->syscall);
    if (!syscall_ok) {
        out->syscall.number = LC_SYSCALL_UNKNOWN;
    }
    out->complete = lc_parse_schedstat(
        text, read_whole(fds[LC_VIEW_SCHEDSTAT], text, sizeof text), &out->sched);
    out->complete &=
        lc_parse_stat(text, read_whole(fds[LC_VIEW_STAT], text, sizeof text), &out->stat);
    if (with_switches) {
        (void)lc_parse_switches(text, read_whole(fds[LC_VIEW_STATUS], text, sizeof text),
                                &out->switches);
    }
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
