#include "core/waits/descriptor_target.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/waits/socket_name.h"

uint32_t lc_descriptor_link(uint32_t owner, uint64_t fd, char *text, uint32_t room)
{
    char path[64];
    if (fd > INT32_MAX) {
        return 0;
    }
    if (owner == 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", (int)fd);
    } else {
        snprintf(path, sizeof path, "/proc/%u/fd/%d", (unsigned)owner, (int)fd);
    }
    const ssize_t got = readlink(path, text, room);
    return got <= 0 ? 0 : (uint32_t)got;
}

static bool begins(const lc_target *target, const char *with)
{
    const size_t length = strlen(with);
    return target->length >= length && memcmp(target->text, with, length) == 0;
}

static bool is_terminal(const lc_target *target)
{
    return begins(target, "/dev/pts/") || begins(target, "/dev/tty") || begins(target, "/dev/console");
}

/* Answered for pipes only, and by the pipe itself: a stat of a fifo would ask its file system. */
static bool is_pipe(int fd) { return fcntl(fd, F_GETPIPE_SZ) >= 0; }

void lc_descriptor_target(uint64_t fd, lc_target *out)
{
    out->kind = LC_TARGET_NONE;
    out->pid = 0;
    out->length = lc_descriptor_link(0, fd, out->text, sizeof out->text);
    if (out->length == 0) {
        return;
    }
    if (begins(out, "socket:")) {
        out->kind = LC_TARGET_SOCKET;
        out->length = lc_socket_peer_text((int)fd, out->text, sizeof out->text);
    } else if (is_pipe((int)fd)) {
        out->kind = LC_TARGET_PIPE;
    } else if (is_terminal(out)) {
        out->kind = LC_TARGET_TERMINAL;
    } else {
        out->kind = out->text[0] == '/' ? LC_TARGET_FILE : LC_TARGET_OTHER;
    }
}
