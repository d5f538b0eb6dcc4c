#include "core/host/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static rlim_t allowed(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

bool lc_kept_files_may_stay(void) { return allowed() >= 256; }

/* Programs get the lowest free number, and some rely on that. So our descriptors have higher numbers, but
 * not so high that the kernel's table of descriptors, which a fork copies, grows. A program without
 * standard streams may open one at any time. */
static int least_number(void)
{
    enum { HIGH = 512 };
    const rlim_t half = allowed() / 2;
    return half > HIGH ? HIGH : half > STDERR_FILENO ? (int)half : STDERR_FILENO + 1;
}

enum { SPARE_MIN = 2, SPARE_MAX = 16, LEFT_MAX = 64 };

static struct {
    enum lc_left_state { NOTHING_LEFT, LEFT, IN_HAND } _Atomic state;
    lc_kept_file file;
} left[LEFT_MAX];
static atomic_uint left_count;

static bool change(size_t i, enum lc_left_state from, enum lc_left_state to)
{
    return atomic_compare_exchange_strong(&left[i].state, &from, to);
}

/* Whether the process has nearly as many descriptors as it may have. Linux says how many since 6.2,
 * without a descriptor for the answer. `fd`: any that is open, of which a copy is made elsewhere;
 * negative: unknown there. */
static bool is_short(int fd)
{
    const rlim_t may_have = allowed(), eighth = may_have / 8;
    const rlim_t spare = eighth < SPARE_MIN ? SPARE_MIN : eighth > SPARE_MAX ? SPARE_MAX : eighth;
    struct stat all;
    if (stat("/proc/self/fd", &all) == 0 && all.st_size > 0) {
        return (rlim_t)all.st_size + spare > may_have;
    }
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, least_number());
    if (copy >= 0) {
        close(copy);
    }
    return copy < 0 && errno == EMFILE;
}

static bool leave(int fd)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0) {
        return false;
    }
    for (size_t i = 0; i < LEFT_MAX; i++) {
        if (change(i, NOTHING_LEFT, IN_HAND)) {
            left[i].file = (lc_kept_file){fd, (uint64_t)facts.st_dev, (uint64_t)facts.st_ino};
            atomic_fetch_add(&left_count, 1u);
            atomic_store(&left[i].state, LEFT);
            return true;
        }
    }
    return false;
}

static void close_left(bool short_too)
{
    bool has_room = true;
    for (size_t i = 0; i < LEFT_MAX && has_room && atomic_load(&left_count) != 0; i++) {
        if (!change(i, LEFT, IN_HAND)) {
            continue;
        }
        const bool is_ours = lc_kept_file_is_ours(&left[i].file);
        has_room = !is_ours || short_too || !is_short(left[i].file.fd);
        if (is_ours && has_room) {
            close(left[i].file.fd);
        }
        if (has_room) {
            atomic_fetch_sub(&left_count, 1u);
        }
        atomic_store(&left[i].state, has_room ? NOTHING_LEFT : LEFT);
    }
}

int lc_open_unnoticed(const char *path, int flags)
{
    if (is_short(-1)) {
        errno = EMFILE;
        return -1;
    }
    return open(path, flags | O_RDONLY | O_CLOEXEC);
}

size_t lc_read_unnoticed(const char *path, char *text, size_t room)
{
    const int fd = lc_open_unnoticed(path, O_NONBLOCK);
    const ssize_t got = fd < 0 ? 0 : read(fd, text, room);
    if (fd >= 0) {
        lc_close_unnoticed(fd);
    }
    return got < 0 ? 0u : (size_t)got;
}

void lc_close_left(void) { close_left(false); }

void lc_close_all_left(void) { close_left(true); }

void lc_close_unnoticed(int fd)
{
    const int error = errno;
    if (!is_short(fd) || !leave(fd)) {
        close(fd);
        lc_close_left();
    }
    errno = error;
}

static int moved_up(int fd)
{
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, least_number());
    lc_close_unnoticed(fd);
    return moved;
}

bool lc_kept_file_take(lc_kept_file *file, int fd)
{
    struct stat facts;
    *file = (lc_kept_file){0};
    fd = fd < 0 ? fd : moved_up(fd);
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &facts) != 0) {
        close(fd);
        return false;
    }
    *file = (lc_kept_file){fd, (uint64_t)facts.st_dev, (uint64_t)facts.st_ino};
    return true;
}

bool lc_kept_file_open(lc_kept_file *file, const char *path)
{
    return lc_kept_file_take(file, lc_open_unnoticed(path, O_NOFOLLOW | O_NOCTTY));
}

bool lc_kept_file_is_ours(const lc_kept_file *file)
{
    struct stat facts;
    return file->fd > 0 && fstat(file->fd, &facts) == 0 && (uint64_t)facts.st_dev == file->device &&
           (uint64_t)facts.st_ino == file->inode;
}

void lc_kept_file_close(lc_kept_file *file)
{
    if (lc_kept_file_is_ours(file)) {
        lc_close_unnoticed(file->fd);
    }
    *file = (lc_kept_file){0};
}

size_t lc_kept_file_read(const lc_kept_file *file, char *text, size_t room)
{
    const ssize_t got = lc_kept_file_is_ours(file) ? pread(file->fd, text, room, 0) : -1;
    return got < 0 ? 0 : (size_t)got;
}
