#include "core/waits/child_target.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/host/kept_file.h"
#include "core/waits/descriptor_target.h"

enum { CHILDREN_MAX = 32, COMMAND_MAX = 200, STAT_MAX = 1024, STANDARD_STREAMS = 3, DIRECTORY_BYTES = 4096 };
enum { PARENT_FIELD = 4, EXIT_SIGNAL_FIELD = 38 }; /* of proc(5)'s stat */

struct directory_entry { /* struct linux_dirent64 of getdents(2) */
    uint64_t inode;
    int64_t offset;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

static uint32_t read_file(const char *path, char *text, uint32_t room)
{
    const int fd = lc_open_unnoticed(path, O_NONBLOCK);
    if (fd < 0) {
        return 0;
    }
    const ssize_t got = read(fd, text, room);
    lc_close_unnoticed(fd);
    return got <= 0 ? 0 : (uint32_t)got;
}

typedef struct {
    char state;
    uint32_t parent;
    int exit_signal;
    const char *name;
    uint32_t name_length;
} child_stat;

/* The number at the start of a field of proc(5)'s stat; the first one after the name is 3. */
static uint32_t number_in(const char *after_name, const char *end, int field)
{
    const char *at = after_name;
    uint32_t number = 0;
    for (int before = field - 3; before > 0 && at < end; at++) {
        before -= *at == ' ';
    }
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        number = number * 10u + (uint32_t)(*at - '0');
    }
    return number;
}

/* proc(5): "pid (name) state ppid ..."; the name may hold anything, also parentheses. */
static bool parse(const char *text, uint32_t length, child_stat *out)
{
    const char *open = memchr(text, '(', length);
    const char *close = memrchr(text, ')', length);
    if (open == NULL || close == NULL || close < open || text + length - close < 5) {
        return false;
    }
    out->name = open + 1;
    out->name_length = (uint32_t)(close - open - 1);
    out->state = close[2];
    out->parent = number_in(close + 2, text + length, PARENT_FIELD);
    out->exit_signal = (int)number_in(close + 2, text + length, EXIT_SIGNAL_FIELD);
    return true;
}

/* Arguments with blanks between them, as far as they go. */
static uint32_t read_command(uint32_t pid, char *text, uint32_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", (unsigned)pid);
    uint32_t length = read_file(path, text, room);
    while (length > 0 && text[length - 1] == '\0') {
        length--;
    }
    for (uint32_t i = 0; i < length; i++) {
        text[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7F ? ' ' : text[i];
    }
    return length;
}

/* False: it is no child of this process. */
static bool read_stat(uint32_t pid, char text[STAT_MAX], child_stat *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)pid);
    return parse(text, read_file(path, text, STAT_MAX), out) && out->parent == (uint32_t)getpid();
}

void lc_child_target(uint64_t pid, lc_target *out)
{
    char text[STAT_MAX];
    child_stat stat;
    *out = (lc_target){.kind = LC_TARGET_NONE};
    if (pid == 0 || pid > INT32_MAX || !read_stat((uint32_t)pid, text, &stat)) {
        return;
    }
    out->kind = LC_TARGET_CHILD;
    out->pid = (uint32_t)pid;
    /* The arguments lie in the child's memory. One that sleeps in the kernel for good (a dead file server) may
     * have locked it, and the watchdog would sleep with it: then the name has to do. */
    if (stat.state != 'D') {
        out->length = read_command(out->pid, out->text, COMMAND_MAX);
    }
    if (out->length == 0) {
        out->length = stat.name_length < COMMAND_MAX ? stat.name_length : COMMAND_MAX;
        memcpy(out->text, stat.name, out->length);
    }
}

static uint32_t children_of(uint64_t tid, uint32_t *pids, uint32_t room)
{
    char path[64];
    char text[CHILDREN_MAX * 12];
    snprintf(path, sizeof path, "/proc/self/task/%llu/children", (unsigned long long)tid);
    const uint32_t length = read_file(path, text, sizeof text);
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

/* The entries of /proc/self/task, if they fit into the buffer at once; 0 otherwise. opendir would allocate. */
static uint32_t list_threads(char *entries, uint32_t room)
{
    const int fd = lc_open_unnoticed("/proc/self/task", O_DIRECTORY);
    if (fd < 0) {
        return 0;
    }
    char rest[256];
    const long got = syscall(SYS_getdents64, fd, entries, room);
    const bool all = got > 0 && syscall(SYS_getdents64, fd, rest, sizeof rest) == 0;
    lc_close_unnoticed(fd);
    return all ? (uint32_t)got : 0;
}

/* Whether a wait for any child sees this one: not such as our own helpers are (wait(2), __WCLONE). */
static bool is_waited_for(uint32_t pid)
{
    char text[STAT_MAX];
    child_stat stat;
    return read_stat(pid, text, &stat) && stat.exit_signal == SIGCHLD;
}

void lc_only_child_target(lc_target *out)
{
    _Alignas(8) char entries[DIRECTORY_BYTES];
    uint32_t only = 0;
    *out = (lc_target){.kind = LC_TARGET_NONE};
    const uint32_t length = list_threads(entries, sizeof entries);
    for (uint32_t at = 0; at + offsetof(struct directory_entry, name) < length;) {
        const struct directory_entry *entry = (const void *)(entries + at);
        uint32_t pids[CHILDREN_MAX];
        const uint64_t tid = strtoull(entry->name, NULL, 10); /* 0: "." and ".." */
        const uint32_t count = tid == 0 ? 0 : children_of(tid, pids, CHILDREN_MAX);
        for (uint32_t i = 0; i < count; i++) {
            const bool counts = is_waited_for(pids[i]);
            if (counts && only != 0) {
                return;
            }
            only = counts ? pids[i] : only;
        }
        if (entry->bytes == 0) {
            return;
        }
        at += entry->bytes;
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
