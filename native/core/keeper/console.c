#include "core/keeper/courier.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { PATIENCE_MS = 200, ONE_BYTE = 1 };
static const char own_number[] = "/proc/self/fd/2";

/* Where a text goes. */
typedef struct {
    int fd;         /* 2, or a description of our own of the same file */
    mode_t kind;    /* S_IFMT of it */
    size_t most;    /* bytes that surely do not block, once it polls as writable */
    uint64_t until; /* ns, monotonic; when it is waited for no longer */
} outlet;

void lc_console_allow(lc_console *console, uint64_t device, uint64_t inode)
{
    atomic_store(&console->device, device);
    atomic_store(&console->inode, inode);
}

static bool is_the_one(const lc_console *console, int fd, struct stat *facts)
{
    const uint64_t inode = atomic_load(&console->inode);
    return inode != 0 && fstat(fd, facts) == 0 && (uint64_t)facts->st_ino == inode &&
           (uint64_t)facts->st_dev == atomic_load(&console->device);
}

/* Non-blocking is a property of the open file, which the program shares: pipes and terminals are opened
 * anew. Where that is not allowed (a terminal of another user), a pipe that polls as writable takes a
 * piece; a terminal is sure to take one byte. */
static bool open_outlet(const lc_console *console, outlet *out)
{
    struct stat facts, own;
    if (!is_the_one(console, STDERR_FILENO, &facts)) {
        return false;
    }
    *out = (outlet){STDERR_FILENO, facts.st_mode & S_IFMT, LC_CONSOLE_PIECE, lc_now_ns()};
    out->until += console->is_stuck ? 0u : PATIENCE_MS * UINT64_C(1000000);
    if (out->kind != S_IFIFO && out->kind != S_IFCHR) {
        return true;
    }
    const int fd = open(own_number, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && is_the_one(console, fd, &own)) {
        out->fd = fd;
        return true;
    }
    if (fd >= 0) {
        close(fd);
    }
    out->most = out->kind == S_IFCHR ? ONE_BYTE : LC_CONSOLE_PIECE;
    return true;
}

/* The program may have closed our descriptor with all others (a daemon does), and have got its number for
 * a file of its own. */
static bool is_still(const lc_console *console, const outlet *out)
{
    struct stat facts;
    return is_the_one(console, out->fd, &facts);
}

static bool has_room(const outlet *out)
{
    if (out->kind == S_IFREG) {
        return true;
    }
    const uint64_t now = lc_now_ns();
    struct pollfd one = {.fd = out->fd, .events = POLLOUT};
    const int ready = poll(&one, 1, now < out->until ? (int)((out->until - now) / 1000000u) : 0);
    return ready == 1 && !(one.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* Waits for room, where another writer took it. False: the deadline has passed. */
static bool wait_a_moment(const outlet *out)
{
    (void)poll(NULL, 0, 1);
    return lc_now_ns() < out->until;
}

static size_t send_all(const lc_console *console, const outlet *out, const char *bytes, size_t count)
{
    size_t sent = 0;
    while (sent < count && has_room(out) && is_still(console, out)) {
        const size_t left = count - sent, part = left < out->most ? left : out->most;
        const ssize_t got = out->kind == S_IFSOCK
                                ? send(out->fd, bytes + sent, part, MSG_DONTWAIT | MSG_NOSIGNAL)
                                : write(out->fd, bytes + sent, part);
        if (got < 0 && errno != EINTR && !(errno == EAGAIN && wait_a_moment(out))) {
            break;
        }
        sent += got > 0 ? (size_t)got : 0u;
    }
    return sent;
}

static bool send_rest(lc_console *console, const outlet *out)
{
    const size_t sent = send_all(console, out, console->rest, console->rest_bytes);
    console->rest_bytes -= sent;
    memmove(console->rest, console->rest + sent, console->rest_bytes);
    return console->rest_bytes == 0;
}

static bool send_piece(lc_console *console, const outlet *out, const char *bytes, size_t count)
{
    const size_t sent = send_all(console, out, bytes, count);
    if (sent > 0 && sent < count) {
        console->rest_bytes = count - sent;
        memcpy(console->rest, bytes + sent, count - sent);
    }
    return sent == count;
}

/* Bytes up to the last line break among the first LC_CONSOLE_PIECE; of a longer line a part that ends with
 * a character. 0: no line ends. */
static size_t next_piece(const char *text, size_t bytes)
{
    const size_t most = bytes < LC_CONSOLE_PIECE ? bytes : LC_CONSOLE_PIECE;
    const char *const end = memrchr(text, '\n', most);
    if (end != NULL || most == bytes) {
        return end == NULL ? 0u : (size_t)(end - text) + 1u;
    }
    size_t cut = most;
    while (cut > most - 3u && ((unsigned char)text[cut] & 0xC0u) == 0x80u) {
        cut--;
    }
    return cut;
}

bool lc_console_write(lc_console *console, const char *text, size_t bytes)
{
    outlet out;
    if (!open_outlet(console, &out)) {
        return false;
    }
    bool written = send_rest(console, &out);
    const char *const last = memrchr(text, '\n', bytes);
    size_t left = last == NULL ? 0u : (size_t)(last - text) + 1u;
    if (written && left > 0 && out.kind == S_IFCHR && isatty(out.fd)) {
        written = send_piece(console, &out, "\n", 1);
    }
    while (written && left > 0) {
        const size_t piece = next_piece(text, left);
        written = send_piece(console, &out, text, piece);
        text += piece;
        left -= piece;
    }
    console->is_stuck = !written;
    if (out.fd != STDERR_FILENO && is_still(console, &out)) {
        close(out.fd);
    }
    return written && last != NULL;
}
