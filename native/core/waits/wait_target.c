#include "core/waits/wait_target.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    POLLED_MAX = 8,
    SELECTED_MAX = 1024, /* FD_SETSIZE: what a set of the C library holds */
    EPOLL_TEXT_MAX = 1024
};

static void nothing(lc_target *out)
{
    out->kind = LC_TARGET_NONE;
    out->pid = 0;
    out->length = 0;
}

/* A pipe to a child means the child: a thread that reads its output waits for it. */
static void of_descriptor(uint64_t tid, uint64_t fd, lc_target *out)
{
    lc_descriptor_target(fd, out);
    if (out->kind == LC_TARGET_PIPE) {
        lc_pipe_to_child(tid, out);
    }
}

static bool same(const lc_target *a, const lc_target *b)
{
    return a->kind == b->kind && a->pid == b->pid && a->length == b->length &&
           memcmp(a->text, b->text, a->length) == 0;
}

/* The target of several descriptors, if it is the same for all: both output pipes of one child. */
static void of_descriptors(uint64_t tid, const int *fds, uint32_t count, lc_target *out)
{
    nothing(out);
    for (uint32_t i = 0; i < count; i++) {
        lc_target each;
        of_descriptor(tid, (uint64_t)fds[i], &each);
        if (i == 0) {
            *out = each;
        } else if (!same(out, &each)) {
            nothing(out);
            return;
        }
    }
}

static void of_path(const lc_memory_reader *reader, uint64_t address, lc_target *out)
{
    nothing(out);
    out->length = lc_read_text(reader, address, out->text, sizeof out->text);
    out->kind = out->length != 0 ? LC_TARGET_FILE : LC_TARGET_NONE;
}

/* A path below the folder of a descriptor; an empty one means the descriptor's own file. */
static void of_path_at(const lc_memory_reader *reader, uint64_t tid, uint64_t folder, uint64_t address,
                       lc_target *out)
{
    of_path(reader, address, out);
    const bool at_current = (int32_t)folder == AT_FDCWD;
    if (at_current || (out->length != 0 && out->text[0] == '/')) {
        return;
    }
    lc_target below;
    of_descriptor(tid, (uint64_t)(uint32_t)folder, &below);
    if (out->length == 0 || below.kind == LC_TARGET_NONE) {
        *out = below;
        return;
    }
    const uint32_t room = (uint32_t)sizeof out->text - below.length - 1u;
    if (below.length + 1u >= sizeof out->text) {
        return;
    }
    const uint32_t kept = out->length < room ? out->length : room;
    memmove(out->text + below.length + 1u, out->text, kept);
    memcpy(out->text, below.text, below.length);
    out->text[below.length] = '/';
    out->length = below.length + 1u + kept;
}

/* Where the socket itself has no peer (yet), the address that the call was given. */
static void of_socket(const lc_memory_reader *reader, uint64_t fd, uint64_t address, uint64_t bytes,
                      lc_target *out)
{
    char copy[LC_SOCKET_ADDRESS_MAX];
    lc_descriptor_target(fd, out);
    if (out->kind != LC_TARGET_SOCKET || address == 0 || bytes > sizeof copy ||
        !lc_read(reader, address, copy, (size_t)bytes)) {
        return;
    }
    char text[LC_STRING_MAX];
    const uint32_t length = lc_socket_address_text(copy, (size_t)bytes, text, sizeof text);
    if (length != 0) {
        memcpy(out->text, text, length);
        out->length = length;
    }
}

static void of_poll(const lc_memory_reader *reader, uint64_t tid, uint64_t address, uint64_t count,
                    lc_target *out)
{
    struct pollfd entries[POLLED_MAX];
    int fds[POLLED_MAX];
    uint32_t used = 0;
    nothing(out);
    if (count == 0 || count > POLLED_MAX ||
        !lc_read(reader, address, entries, (size_t)count * sizeof entries[0])) {
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (entries[i].fd >= 0) { /* others are left out by poll as well */
            fds[used++] = entries[i].fd;
        }
    }
    of_descriptors(tid, fds, used, out);
}

static void of_select(const lc_memory_reader *reader, uint64_t tid, const uint64_t *args, lc_target *out)
{
    uint64_t all[SELECTED_MAX / 64] = {0};
    int fds[POLLED_MAX];
    uint32_t used = 0;
    nothing(out);
    if (args[0] == 0 || args[0] > SELECTED_MAX) {
        return;
    }
    const size_t words = (size_t)(args[0] + 63u) / 64u; /* the kernel reads whole words */
    for (int set = 1; set <= 3; set++) {
        uint64_t bits[SELECTED_MAX / 64];
        if (args[set] == 0) {
            continue;
        }
        if (!lc_read(reader, args[set], bits, words * sizeof bits[0])) {
            return;
        }
        for (size_t i = 0; i < words; i++) {
            all[i] |= bits[i];
        }
    }
    for (uint32_t fd = 0; fd < args[0]; fd++) {
        if (all[fd / 64] >> fd % 64 & 1u) {
            if (used == POLLED_MAX) {
                return;
            }
            fds[used++] = (int)fd;
        }
    }
    of_descriptors(tid, fds, used, out);
}

/* The one descriptor of an epoll set: proc(5), fdinfo, a line "tfd: N ..." for each. */
static void of_epoll(uint64_t tid, uint64_t fd, lc_target *out)
{
    static const char label[] = "tfd:";
    char path[64];
    char text[EPOLL_TEXT_MAX];
    nothing(out);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", (int)fd);
    const size_t got = fd > INT32_MAX ? 0 : lc_read_unnoticed(path, text, sizeof text - 1u);
    if (got == sizeof text - 1u) {
        return;
    }
    text[got] = '\0';
    const char *only = strstr(text, label);
    if (only == NULL || strstr(only + 1, label) != NULL) {
        return;
    }
    int watched = -1;
    if (sscanf(only + sizeof label - 1u, "%d", &watched) == 1 && watched >= 0) {
        of_descriptor(tid, (uint64_t)watched, out);
    }
}

/* `pid` as of wait4: -1 any child; others below 1 mean groups. */
static void of_child(int64_t pid, lc_target *out)
{
    nothing(out);
    if (pid > 0) {
        lc_child_target((uint64_t)pid, out);
    } else if (pid == -1) {
        lc_only_child_target(out);
    }
}

static void of_waitid(int32_t kind, int32_t id, lc_target *out)
{
    of_child(kind == P_PID ? id : kind == P_ALL ? -1 : 0, out);
}

void lc_wait_target(const lc_memory_reader *reader, uint64_t tid, const lc_syscall_fields *call,
                    lc_target *out)
{
    const lc_syscall_shape shape = lc_syscall_shape_of(call->number);
    const uint64_t *args = call->args;
    const uint64_t first = args[shape.first];
    switch (shape.kind) {
    case LC_SHAPE_DESCRIPTOR:
        of_descriptor(tid, (uint32_t)first, out);
        return;
    case LC_SHAPE_PATH:
        of_path(reader, first, out);
        return;
    case LC_SHAPE_PATH_AT:
        of_path_at(reader, tid, first, args[shape.first + 1], out);
        return;
    case LC_SHAPE_CONNECT:
        of_socket(reader, (uint32_t)first, args[1], args[2], out);
        return;
    case LC_SHAPE_SEND_TO:
        of_socket(reader, (uint32_t)first, args[4], args[5], out);
        return;
    case LC_SHAPE_POLL:
        of_poll(reader, tid, first, args[1], out);
        return;
    case LC_SHAPE_SELECT:
        of_select(reader, tid, args, out);
        return;
    case LC_SHAPE_EPOLL:
        of_epoll(tid, (uint32_t)first, out);
        return;
    case LC_SHAPE_WAIT_PID:
        of_child((int32_t)first, out);
        return;
    case LC_SHAPE_WAIT_ID:
        of_waitid((int32_t)first, (int32_t)args[1], out);
        return;
    case LC_SHAPE_NONE:
        break;
    }
    nothing(out);
}
