#include "core/host/kept_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static rlim_t allowed(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

bool lc_kept_files_may_stay(void) { return allowed() >= 256; }

/* Programs get the lowest free number, and some count on it: ours are higher, but not so high that the kernel's table of
 * descriptors, which a fork copies, gets large. A program without standard streams may open one at any time. */
static int moved_up(int fd)
{
    enum { HIGH = 512 };
    const rlim_t half = allowed() / 2;
    const int least = half > HIGH ? HIGH : half > STDERR_FILENO ? (int)half : STDERR_FILENO + 1;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, least);
    if (moved < 0 && fd > STDERR_FILENO) {
        return fd;
    }
    close(fd);
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
    return lc_kept_file_take(file, open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY));
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
        close(file->fd);
    }
    *file = (lc_kept_file){0};
}

size_t lc_kept_file_read(const lc_kept_file *file, char *text, size_t room)
{
    const ssize_t got = lc_kept_file_is_ours(file) ? pread(file->fd, text, room, 0) : -1;
    return got < 0 ? 0 : (size_t)got;
}
