
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/host/kept_file.h"
#include "core/host/spawn_apart.h"
#include "core/host/thread_view.h"
#include "core/waits/wait_target.h"

enum { CHILDREN_MAX = 32, COMMAND_MAX = 200, STAT_MAX = 1024, STANDARD_STREAMS = 3 };

static bool read_stat(uint64_t pid, char text[STAT_MAX], lc_stat_fields *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    return pid != 0 && pid <= INT32_MAX && lc_parse_stat(text, lc_read_unnoticed(path, text, STAT_MAX), out);
}

/* The arguments lie in the process's memory. One that sleeps in the kernel for good (a dead file server)
 * may have locked it, and the watchdog would sleep with it: then the name has to do. */
static uint32_t put_command(uint64_t pid, const lc_stat_fields *stat, char *text, uint32_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%llu/cmdline", (unsigned long long)pid);
    uint32_t length = stat->state == 'D' ? 0 : (uint32_t)lc_read_unnoticed(path, text, room);
    while (length > 0 && text[length - 1] == '\0') {
        length--;
    }
    if (length == 0) {
        length = stat->name_length < room ? (uint32_t)stat->name_length : room;
        memcpy(text, stat->name, length);
    }
    for (uint32_t i = 0; i < length; i++) {
        text[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7F ? ' ' : text[i];
    }
    return length;
}

uint32_t lc_process_command(uint64_t pid, char *text, uint32_t room)
{
    char facts[STAT_MAX];
    lc_stat_fields stat;
    return read_stat(pid, facts, &stat) ? put_command(pid, &stat, text, room) : 0;
}

void lc_child_target(uint64_t pid, lc_target *out)
{
    char text[STAT_MAX];
    lc_stat_fields stat;
    *out = (lc_target){.kind = LC_TARGET_NONE};
    if (read_stat(pid, text, &stat) && stat.parent == (uint64_t)getpid()) {
        out->kind = LC_TARGET_CHILD;
        out->pid = (uint32_t)pid;
        out->length = put_command(pid, &stat, out->text, COMMAND_MAX);
    }
}

static uint32_t children_of(uint64_t tid, uint32_t *pids, uint32_t room)
{
    char path[64];
    char text[CHILDREN_MAX * 12];
    snprintf(path, sizeof path, "/proc/self/task/%llu/children", (unsigned long long)tid);
    const uint32_t length = (uint32_t)lc_read_unnoticed(path, text, sizeof text);
    uint32_t count = 0;
    uint32_t pid = 0;
    for (uint32_t i = 0; i < length && count < room; i++) { /* each pid is followed by a blank */
        if (text[i] >= '0' && text[i] <= '9') {
            pid = pid * 10u + (uint32_t)(text[i] - '0');
        } else if (pid != 0) {
            pids[count++] = pid;
            pid = 0;
        }
    }
    return count;
}

/* Whether a wait of the program for any child may return this one: not if wait(2) leaves it out (__WCLONE),
 * nor if we started it. */
static bool is_waited_for(uint32_t pid)
{
    char text[STAT_MAX];
    lc_stat_fields stat;
    return !lc_is_spawned_child((pid_t)pid) && read_stat(pid, text, &stat) &&
           stat.parent == (uint64_t)getpid() && stat.exit_signal == SIGCHLD;
}

void lc_only_child_target(lc_target *out)
{
    lc_thread_list threads;
    uint32_t only = 0;
    *out = (lc_target){.kind = LC_TARGET_NONE};
    lc_thread_list_read(&threads);
    for (uint64_t tid = lc_thread_list_next(&threads); tid != 0; tid = lc_thread_list_next(&threads)) {
        uint32_t pids[CHILDREN_MAX];
        const uint32_t count = children_of(tid, pids, CHILDREN_MAX);
        for (uint32_t i = 0; i < count; i++) {
            const bool counts = is_waited_for(pids[i]);
            if (counts && only != 0) {
                return;
            }
            only = counts ? pids[i] : only;
        }
    }
    lc_child_target(only, out);
}

static bool has_as_stream(uint32_t pid, const lc_target *pipe)
{
    char link[64];
    for (uint64_t fd = 0; fd < STANDARD_STREAMS; fd++) {
        const uint32_t length = lc_descriptor_link(pid, fd, link, sizeof link);
        if (length != 0 && length == pipe->length && memcmp(link, pipe->text, length) == 0) {
            return true;
        }
    }
    return false;
}

void lc_pipe_to_child(uint64_t tid, lc_target *target)
{
    uint32_t pids[CHILDREN_MAX];
    const uint32_t count = children_of(tid, pids, CHILDREN_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (has_as_stream(pids[i], target)) {
            lc_target child;
            lc_child_target(pids[i], &child);
            if (child.kind == LC_TARGET_CHILD) {
                *target = child;
            }
            return;
        }
    }
}
