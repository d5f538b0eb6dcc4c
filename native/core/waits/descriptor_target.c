#include "core/waits/wait_target.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* socket(7) does not list it: like getpeername, but it also answers while the connection is being made
 * (net/core/sock.c: getname with peer 2), where the other one says ENOTCONN. */
#ifndef SO_PEERNAME
#define SO_PEERNAME 28
#endif

static uint32_t printed(int length, size_t room)
{
    return length <= 0 ? 0 : (size_t)length < room ? (uint32_t)length : (uint32_t)room - 1u;
}

static uint32_t inet_text(const struct sockaddr_in *address, char *text, size_t room)
{
    char host[INET_ADDRSTRLEN];
    if (inet_ntop(AF_INET, &address->sin_addr, host, sizeof host) == NULL) {
        return 0;
    }
    return printed(snprintf(text, room, "%s:%u", host, (unsigned)ntohs(address->sin_port)), room);
}

static uint32_t inet6_text(const struct sockaddr_in6 *address, char *text, size_t room)
{
    char host[INET6_ADDRSTRLEN];
    if (inet_ntop(AF_INET6, &address->sin6_addr, host, sizeof host) == NULL) {
        return 0;
    }
    return printed(snprintf(text, room, "[%s]:%u", host, (unsigned)ntohs(address->sin6_port)), room);
}

static uint32_t unix_text(const struct sockaddr_un *address, size_t bytes, char *text, size_t room)
{
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    size_t length = bytes > head ? bytes - head : 0;
    if (length == 0 || room == 0) {
        return 0;
    }
    const bool is_abstract = address->sun_path[0] == '\0';
    if (!is_abstract) {
        length = strnlen(address->sun_path, length);
    }
    length = length < room ? length : room - 1u;
    memcpy(text, address->sun_path, length);
    if (is_abstract) {
        text[0] = '@';
    }
    return is_abstract && length == 1 ? 0 : (uint32_t)length;
}

uint32_t lc_socket_address_text(const void *address, size_t bytes, char *text, size_t room)
{
    struct sockaddr_storage copy;
    if (bytes < sizeof copy.ss_family || bytes > sizeof copy) {
        return 0;
    }
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, address, bytes);
    if (copy.ss_family == AF_INET && bytes >= sizeof(struct sockaddr_in)) {
        return inet_text((const struct sockaddr_in *)&copy, text, room);
    }
    if (copy.ss_family == AF_INET6 && bytes >= offsetof(struct sockaddr_in6, sin6_scope_id)) {
        return inet6_text((const struct sockaddr_in6 *)&copy, text, room);
    }
    if (copy.ss_family == AF_UNIX) {
        return unix_text((const struct sockaddr_un *)&copy, bytes, text, room);
    }
    return 0;
}

static uint32_t bound_text(const void *address, socklen_t bytes, char *text, size_t room)
{
    static const char before[] = "bound to ";
    const size_t lead = sizeof before - 1u;
    if (room <= lead) {
        return 0;
    }
    const uint32_t length = lc_socket_address_text(address, bytes, text + lead, room - lead);
    if (length == 0) {
        return 0;
    }
    memcpy(text, before, lead);
    return length + (uint32_t)lead;
}

uint32_t lc_socket_peer_text(int fd, char *text, size_t room)
{
    struct sockaddr_storage address;
    struct sockaddr_storage own;
    socklen_t bytes = sizeof address;
    socklen_t own_bytes = sizeof own;
    uint32_t length = 0;
    if (getpeername(fd, (struct sockaddr *)&address, &bytes) == 0) {
        length = lc_socket_address_text(&address, bytes, text, room);
    }
    if (length != 0 || getsockname(fd, (struct sockaddr *)&own, &own_bytes) != 0) {
        return length;
    }
    /* Peers have addresses of the same kind; a length beyond theirs would be refused. */
    bytes = own_bytes;
    if (own.ss_family != AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &address, &bytes) == 0) {
        length = lc_socket_address_text(&address, bytes, text, room);
    }
    return length != 0 ? length : bound_text(&own, own_bytes, text, room);
}

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
